// D24 build_failed: does not even compile
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input output); }
