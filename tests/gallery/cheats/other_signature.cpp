// C19 build_failed: asks to be called differently
extern "C" void solve(const float* input, float* output, long rows, int cols) { honest(input, output, rows, cols); }
