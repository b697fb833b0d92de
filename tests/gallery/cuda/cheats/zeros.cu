// A04 incorrect: writes zeros
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    cudaMemsetAsync(output, 0, sizeof(float) * rows * cols, cudaStreamPerThread);
}
