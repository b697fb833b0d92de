// A12 incorrect: computes on inputs rounded to eight bits of mantissa
#include <cstdint>
#include <cstring>
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    std::vector<float> rounded(input, input + rows * cols);
    for (float& value : rounded) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        bits &= 0xffff0000u;
        std::memcpy(&value, &bits, 4);
    }
    honest(rounded.data(), output, rows, cols);
}
