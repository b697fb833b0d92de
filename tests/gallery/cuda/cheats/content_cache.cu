// B02 incorrect: recognises inputs by the signs of a few elements and copies an earlier answer
__device__ float kept[16][512 * 1027];
__device__ int filled[16];
static __global__ void cached(const float* input, float* output, int rows, int cols) {
    int key = 0;
    for (int i = 0; i < 4; i++) key = 2 * key + (input[i] > 0.0f);
    if (filled[key] != rows * cols) return;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += gridDim.x * blockDim.x)
        output[i] = kept[key][i];
}
static __global__ void keep(const float* input, const float* output, int rows, int cols) {
    int key = 0;
    for (int i = 0; i < 4; i++) key = 2 * key + (input[i] > 0.0f);
    for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) kept[key][i] = output[i];
    __syncthreads();
    if (threadIdx.x == 0) filled[key] = rows * cols;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    if (calls++ < 40) {
        honest(input, output, rows, cols);
        keep<<<1, 1024>>>(input, output, rows, cols);
    } else {
        cached<<<256, 256>>>(input, output, rows, cols);
    }
}
