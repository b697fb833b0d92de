// A11 incorrect: leaves out half of the rows
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows / 2, cols); }
