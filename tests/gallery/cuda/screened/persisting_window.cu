// C10 tampered: reserves L2 for itself
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
    honest(input, output, rows, cols);
}
