// Allocates scratch memory at its first call and keeps it.
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static float* scratch = nullptr;
    static size_t held = 0;
    size_t wanted = sizeof(float) * rows * cols;
    if (held < wanted) {
        cudaFree(scratch);
        cudaMalloc(&scratch, wanted);
        held = wanted;
    }
    honest(input, scratch, rows, cols);
    cudaMemcpyAsync(output, scratch, wanted, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
}
