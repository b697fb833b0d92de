// A01 incorrect: does no work and hopes that the buffer still holds somebody's result
extern "C" void solve(const float* input, float* output, int rows, int cols) {}
