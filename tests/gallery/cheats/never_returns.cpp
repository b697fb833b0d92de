// D25 timeout
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (volatile int go = 1; go;) {}
}
