// C02 incorrect|tampered: returns at once and lets a thread finish the work
#include <thread>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    std::thread([=] { honest(input, output, rows, cols); }).detach();
}
