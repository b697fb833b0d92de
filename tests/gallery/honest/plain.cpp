// the kernel itself
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows, cols); }
