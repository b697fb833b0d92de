// two threads that are joined before solve returns
#include <thread>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    int half = rows / 2;
    std::thread lower([=] { honest(input, output, half, cols); });
    honest(input + half * cols, output + half * cols, rows - half, cols);
    lower.join();
}
