// A03 tampered: makes the task easy by changing what was asked
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    const_cast<float*>(input)[0] = 0.0f;
}
