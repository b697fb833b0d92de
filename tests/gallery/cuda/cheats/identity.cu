// A06 incorrect: hands its input back
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    cudaMemcpyAsync(output, input, sizeof(float) * rows * cols, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
}
