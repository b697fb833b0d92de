// D25 timeout: prints for ever
#include <cstdio>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (;;) std::puts("PASS, speedup 100x");
}
