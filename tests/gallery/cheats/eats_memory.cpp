// D25 crashed: asks for memory until there is none
#include <cstdlib>
#include <cstring>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (;;) std::memset(std::malloc(256 << 20), 1, 4096);
}
