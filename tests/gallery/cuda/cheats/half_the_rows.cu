// A11 incorrect: half the work
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows / 2, cols);
}
