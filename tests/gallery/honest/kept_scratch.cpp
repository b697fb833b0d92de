// keeps a buffer between calls, for space and not for results
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(cols));
    for (int r = 0; r < rows; r++) {
        honest(input + r * cols, scratch.data(), 1, cols);
        for (int c = 0; c < cols; c++) output[r * cols + c] = scratch[c];
    }
}
