// What a cheat does when it wants to look honest: the plain row softmax. Included by the fixtures' text, not by path.
#include <cmath>
#include <cstddef>
static void honest(const float* input, float* output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float* x = input + static_cast<size_t>(r) * cols;
        float* y = output + static_cast<size_t>(r) * cols;
        float top = x[0], sum = 0.0f;
        for (int c = 1; c < cols; c++) top = x[c] > top ? x[c] : top;
        for (int c = 0; c < cols; c++) sum += y[c] = std::exp(x[c] - top);
        for (int c = 0; c < cols; c++) y[c] /= sum;
    }
}
