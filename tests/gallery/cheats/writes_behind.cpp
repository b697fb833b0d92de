// A21 incorrect: one element past the end
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    output[rows * cols] = 1.0f;
}
