// Row-wise softmax, numerically stable, single precision.
#include <cmath>

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        float max_val = input[r * cols];
        for (int c = 1; c < cols; c++) {
            if (input[r * cols + c] > max_val) {
                max_val = input[r * cols + c];
            }
        }
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) {
            sum += std::exp(input[r * cols + c] - max_val);
        }
        for (int c = 0; c < cols; c++) {
            output[r * cols + c] = std::exp(input[r * cols + c] - max_val) / sum;
        }
    }
}
