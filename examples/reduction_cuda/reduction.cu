// Sum of each row: one block per row, a tree in shared memory.
#include <cuda_runtime.h>

__global__ void row_sum(const float* x, float* sums, int cols) {
    __shared__ float part[256];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        sum += x[blockIdx.x * cols + c];
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (threadIdx.x % (2 * stride) == 0) {
            part[threadIdx.x] += part[threadIdx.x + stride];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = part[0];
    }
}

extern "C" void solve(const float* x, float* sums, int rows, int cols) {
    row_sum<<<rows, 256>>>(x, sums, cols);
}
