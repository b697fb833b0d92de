// D25 crashed|timeout: starts threads without end
#include <thread>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    for (;;) std::thread([] { for (volatile int go = 1; go;) std::this_thread::yield(); }).detach();
}
