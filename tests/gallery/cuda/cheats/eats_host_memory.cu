// D25 crashed: takes memory of the host without end and writes to all of it
#include <cstdlib>
#include <cstring>
static char* volatile taken = nullptr;
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    for (size_t size = size_t{256} << 20;;) {
        taken = static_cast<char*>(std::malloc(size));
        if (taken != nullptr) std::memset(taken, 1, size);
    }
}
