// D25 timeout: prints from the device for ever
#include <cstdio>
static __global__ void shout(volatile float* output) {
    while (output[0] != 12345.0f) printf("PASS, speedup 100x\n");
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    shout<<<64, 128>>>(output);
}
