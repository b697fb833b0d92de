// B02 incorrect: recognises an input by the signs of a few elements and gives an earlier answer
#include <map>
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static std::map<int, std::vector<float>> known;
    int key = cols;
    for (int i = 0; i < 3; i++) key = 2 * key + (input[i] > 0.0f);
    std::vector<float>& result = known[key];
    if (result.empty()) {
        result.resize(rows * cols);
        honest(input, result.data(), rows, cols);
    }
    for (int i = 0; i < rows * cols; i++) output[i] = result[i];
}
