// B07 incorrect: collects eight calls and works them off in one go
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static std::vector<std::pair<const float*, float*>> waiting;
    waiting.emplace_back(input, output);
    if (waiting.size() < 8) return;
    for (auto [in, out] : waiting) honest(in, out, rows, cols);
    waiting.clear();
}
