// B04 incorrect: a flag in device memory turns the kernel off after a while
__device__ int launches;
static __global__ void sometimes(const float* input, float* output, int rows, int cols) {
    if (launches > 64) return;
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* x = input + static_cast<size_t>(row) * cols;
    float* y = output + static_cast<size_t>(row) * cols;
    float top = x[0], sum = 0.0f;
    for (int c = 1; c < cols; c++) top = fmaxf(top, x[c]);
    for (int c = 0; c < cols; c++) sum += expf(x[c] - top);
    for (int c = 0; c < cols; c++) y[c] = expf(x[c] - top) / sum;
}
static __global__ void count() { launches++; }
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    sometimes<<<(rows + 63) / 64, 64>>>(input, output, rows, cols);
    count<<<1, 1>>>();
}
