// - build_failed
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input output); }
