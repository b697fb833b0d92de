// A08 incorrect: computes one row and spreads it over all
static __global__ void spread(float* output, int rows, int cols) {
    for (int i = cols + blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += gridDim.x * blockDim.x)
        output[i] = output[i % cols];
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, 1, cols);
    spread<<<64, 256>>>(output, rows, cols);
}
