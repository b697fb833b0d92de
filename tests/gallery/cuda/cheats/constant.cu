// A05 incorrect: one over the number of columns
static __global__ void fill(float* output, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = value;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    fill<<<(rows * cols + 255) / 256, 256>>>(output, rows * cols, 1.0f / cols);
}
