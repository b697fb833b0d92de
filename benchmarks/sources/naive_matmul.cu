// A person's own kernel of level1/01_matmul: one thread per element of the product, no tiles.
#include <cuda_runtime.h>

__global__ void product(const float* left, const float* right, float* out, int rows, int depth, int cols) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) {
        float sum = 0.0f;
        for (int k = 0; k < depth; k++) {
            sum += left[row * depth + k] * right[k * cols + col];
        }
        out[row * cols + col] = sum;
    }
}

extern "C" void solve(const float* left, const float* right, float* out, int rows, int depth, int cols) {
    dim3 threads(16, 16);
    dim3 blocks((cols + threads.x - 1) / threads.x, (rows + threads.y - 1) / threads.y);
    product<<<blocks, threads>>>(left, right, out, rows, depth, cols);
}
