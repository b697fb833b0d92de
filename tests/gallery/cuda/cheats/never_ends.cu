// D25 timeout: a kernel that spins for ever
static __global__ void spin(volatile float* output) {
    while (output[0] != 12345.0f) {
    }
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    spin<<<1, 1>>>(output);
}
