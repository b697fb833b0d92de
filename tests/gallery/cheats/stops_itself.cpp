// D25 timeout: stops its own process
#include <csignal>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    raise(SIGSTOP);
    for (volatile int go = 1; go;) {}
}
