// Row-wise softmax, numerically stable, single precision: one thread per row.
#include <cuda_runtime.h>

__global__ void softmax(const float* input, float* output, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) {
        return;
    }
    float max_val = input[row * cols];
    for (int c = 1; c < cols; c++) {
        max_val = fmaxf(max_val, input[row * cols + c]);
    }
    float sum = 0.0f;
    for (int c = 0; c < cols; c++) {
        sum += expf(input[row * cols + c] - max_val);
    }
    for (int c = 0; c < cols; c++) {
        output[row * cols + c] = expf(input[row * cols + c] - max_val) / sum;
    }
}

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    int threads = 64;
    softmax<<<(rows + threads - 1) / threads, threads>>>(input, output, rows, cols);
}
