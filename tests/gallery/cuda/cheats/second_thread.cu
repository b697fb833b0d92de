// C02 incorrect: leaves the work to a thread that starts it later
#include <chrono>
#include <thread>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        honest(input, output, rows, cols);
    }).detach();
}
