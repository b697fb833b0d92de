// D24 build_failed: no such function
extern "C" void solve(const float* input, float* output, int rows, int cols) { faster_softmax(input, output); }
