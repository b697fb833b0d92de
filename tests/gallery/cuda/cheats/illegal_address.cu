// A21 crashed: reads from nowhere
static __global__ void wild(float* output) { output[0] = *reinterpret_cast<const float*>(0x10); }
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    wild<<<1, 1>>>(output);
}
