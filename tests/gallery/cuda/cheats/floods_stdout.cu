// D25 timeout: its host code prints for ever
#include <cstdio>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    for (;;) std::puts("PASS, speedup 100x");
}
