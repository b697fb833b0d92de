// A21 incorrect: one element before the start
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    output[-1] = 1.0f;
}
