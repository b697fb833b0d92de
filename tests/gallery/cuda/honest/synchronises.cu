// Waits at its end, as most code in the wild does.
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    cudaDeviceSynchronize();
}
