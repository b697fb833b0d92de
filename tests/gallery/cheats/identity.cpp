// A06 incorrect: hands its input back
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int i = 0; i < rows * cols; i++) output[i] = input[i];
}
