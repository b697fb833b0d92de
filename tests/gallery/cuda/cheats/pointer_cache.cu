// B01 incorrect: remembers which outputs it has filled
#include <set>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static std::set<const void*> seen;
    if (seen.insert(output).second) honest(input, output, rows, cols);
}
