// A09 incorrect: not-a-number is no wildcard
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    output[rows * cols / 2] = NAN;
}
