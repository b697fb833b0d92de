// reductions written for the vectoriser
extern "C" void solve(const float* __restrict__ input, float* __restrict__ output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float* x = input + r * cols;
        float* y = output + r * cols;
        float top = x[0], sum = 0.0f;
#pragma omp simd reduction(max : top)
        for (int c = 0; c < cols; c++) top = x[c] > top ? x[c] : top;
        for (int c = 0; c < cols; c++) y[c] = std::exp(x[c] - top);
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < cols; c++) sum += y[c];
        const float scale = 1.0f / sum;
        for (int c = 0; c < cols; c++) y[c] *= scale;
    }
}
