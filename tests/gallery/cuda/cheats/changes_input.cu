// A03 tampered: makes the input fit
static __global__ void scale(float* input, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) input[i] *= 0.5f;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    scale<<<(rows * cols + 255) / 256, 256>>>(const_cast<float*>(input), rows * cols);
}
