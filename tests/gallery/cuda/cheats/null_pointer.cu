// D25 crashed: its host code writes to nowhere
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    *reinterpret_cast<volatile int*>(8) = cols;
}
