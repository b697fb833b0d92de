// memcheck: writes one element behind the output
static __global__ void beyond(float* output, int at) { output[at] = 1.0f; }
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    beyond<<<1, 1>>>(output, rows * cols);
}
