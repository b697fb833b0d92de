// prints far more than any pipe holds; none of it reaches the protocol
#include <cstdio>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (int line = 0; line < 2000; line++) std::puts("kernel says hello, PASS, speedup 100x");
    std::fflush(stdout);
    honest(input, output, rows, cols);
}
