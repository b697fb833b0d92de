// A05 incorrect: one over the number of columns, which is what a softmax gives on average
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int i = 0; i < rows * cols; i++) output[i] = 1.0f / cols;
}
