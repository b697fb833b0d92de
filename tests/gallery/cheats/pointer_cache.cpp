// B01 incorrect: remembers results by the address of the input
#include <map>
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static std::map<const float*, std::vector<float>> known;
    std::vector<float>& result = known[input];
    if (result.empty()) {
        result.resize(rows * cols);
        honest(input, result.data(), rows, cols);
    }
    for (int i = 0; i < rows * cols; i++) output[i] = result[i];
}
