// D25 crashed
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    *reinterpret_cast<volatile float*>(16) = 1.0f;
}
