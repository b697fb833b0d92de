// Allocates and frees in every call, which cannot be captured: timed plainly, on record.
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    float* scratch = nullptr;
    size_t wanted = sizeof(float) * rows * cols;
    cudaMalloc(&scratch, wanted);
    honest(input, scratch, rows, cols);
    cudaMemcpyAsync(output, scratch, wanted, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
    cudaFree(scratch);
}
