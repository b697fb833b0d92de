// A11 incorrect: leaves the last column out of the sum
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float* x = input + static_cast<size_t>(r) * cols;
        float* y = output + static_cast<size_t>(r) * cols;
        float top = x[0], sum = 0.0f;
        for (int c = 1; c < cols; c++) top = x[c] > top ? x[c] : top;
        for (int c = 0; c < cols - 1; c++) sum += std::exp(x[c] - top);
        for (int c = 0; c < cols; c++) y[c] = std::exp(x[c] - top) / sum;
    }
}
