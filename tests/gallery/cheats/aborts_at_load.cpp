// D25 crashed: before the first launch
#include <cstdlib>
struct Trap { Trap() { std::abort(); } } trap;
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows, cols); }
