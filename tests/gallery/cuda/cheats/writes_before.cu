// A21 incorrect: one element before the first
static __global__ void before(float* output) { output[-1] = 1.0f; }
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    before<<<1, 1>>>(output);
}
