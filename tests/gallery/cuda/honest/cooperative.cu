// One cooperative launch whose blocks wait for each other.
#include <cooperative_groups.h>
static __global__ void together(const float* input, float* output, int rows, int cols) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float* x = input + static_cast<size_t>(row) * cols;
        float* y = output + static_cast<size_t>(row) * cols;
        if (threadIdx.x == 0) {
            float top = x[0];
            for (int c = 1; c < cols; c++) top = fmaxf(top, x[c]);
            y[0] = top;
        }
    }
    cooperative_groups::this_grid().sync();
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float* x = input + static_cast<size_t>(row) * cols;
        float* y = output + static_cast<size_t>(row) * cols;
        __shared__ float total;
        if (threadIdx.x == 0) {
            total = 0.0f;
            for (int c = 0; c < cols; c++) total += expf(x[c] - y[0]);
        }
        __syncthreads();
        float top = y[0];
        __syncthreads();
        for (int c = threadIdx.x; c < cols; c += blockDim.x) y[c] = expf(x[c] - top) / total;
        __syncthreads();
    }
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    void* arguments[] = {&input, &output, &rows, &cols};
    cudaLaunchCooperativeKernel((void*)together, dim3(128), dim3(64), arguments, 0, cudaStreamPerThread);
}
