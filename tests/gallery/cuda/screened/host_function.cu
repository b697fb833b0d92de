// C02 tampered: lets the host do something when the stream gets there
static void later(void*) {}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    cudaLaunchHostFunc(cudaStreamPerThread, later, nullptr);
}
