// Row-wise softmax, numerically stable, single precision: one block per row.
#include <cuda_runtime.h>

__global__ void softmax(const float* input, float* output, int cols) {
    const float* x = input + static_cast<size_t>(blockIdx.x) * cols;
    float* y = output + static_cast<size_t>(blockIdx.x) * cols;
    __shared__ float part[128];
    float top = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += 128) top = fmaxf(top, x[c]);
    part[threadIdx.x] = top;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(x[c] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    sum = part[0];
    for (int c = threadIdx.x; c < cols; c += 128) y[c] = expf(x[c] - top) / sum;
}

extern "C" void solve(const float* input, float* output, int rows, int cols) {
    softmax<<<rows, 128>>>(input, output, cols);
}
