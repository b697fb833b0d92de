// A04 incorrect: a constant instead of the result
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int i = 0; i < rows * cols; i++) output[i] = 0.0f;
}
