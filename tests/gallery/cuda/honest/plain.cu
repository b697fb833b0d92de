// Nothing but the kernel.
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows, cols); }
