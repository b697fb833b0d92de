// A13 incorrect: rounds the columns down to a multiple of eight
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    for (int r = 0; r < rows; r++)
        for (int c = cols / 8 * 8; c < cols; c++) output[r * cols + c] = 0.0f;
}
