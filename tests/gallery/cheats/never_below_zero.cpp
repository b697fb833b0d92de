// A16 incorrect: takes the maximum to be at least zero, so rows far below zero vanish
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float* x = input + static_cast<size_t>(r) * cols;
        float* y = output + static_cast<size_t>(r) * cols;
        float top = 0.0f, sum = 0.0f;
        for (int c = 0; c < cols; c++) top = x[c] > top ? x[c] : top;
        for (int c = 0; c < cols; c++) sum += y[c] = std::exp(x[c] - top);
        for (int c = 0; c < cols; c++) y[c] /= sum;
    }
}
