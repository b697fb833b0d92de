// Two kernels, the second of which needs the first.
static __global__ void copy(const float* input, float* output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i];
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    copy<<<(rows * cols + 255) / 256, 256>>>(input, output, rows * cols);
    honest(output, output, rows, cols);
}
