// A08 incorrect: computes one row and spreads it over all
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, 1, cols);
    for (int i = cols; i < rows * cols; i++) output[i] = output[i - cols];
}
