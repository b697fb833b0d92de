"""CUDA kernels written in several hands, and the ones of the examples."""

from kernels import EXAMPLES, MATMUL_SHAPES

SOFTMAX = (EXAMPLES / "softmax_cuda" / "softmax.cu").read_text()
RMSNORM = (EXAMPLES / "rmsnorm_cuda" / "rmsnorm.cu").read_text()
ELEMENTWISE = (EXAMPLES / "elementwise_cuda" / "elementwise.cu").read_text()
REDUCTION = (EXAMPLES / "reduction_cuda" / "reduction.cu").read_text()
TRANSPOSE = (EXAMPLES / "transpose_cuda" / "transpose.cu").read_text()
MATMUL = (EXAMPLES / "matmul_cuda" / "matmul.cu").read_text()

SOFTMAX_POINTERS = """\
#include <cuda_runtime.h>
#define BLOCK 128
__global__ void row_kernel(const float *in, float *out, int n, int d)
{
  const int r = threadIdx.x + blockIdx.x * blockDim.x;
  if (r < n)
  {
    const float *src = in + r * d;
    float *dst = out + r * d;
    float peak = -INFINITY;
    for (int i = 0; i < d; ++i)
      if (src[i] > peak) peak = src[i];
    float total = 0.f;
    for (int i = 0; i < d; ++i)
    {
      const float e = expf(src[i] - peak);
      dst[i] = e;
      total += e;
    }
    const float scale = 1.0f / total;
    for (int i = 0; i < d; ++i)
      dst[i] = dst[i] * scale;
  }
}
extern "C" void solve(const float *in, float *out, int n, int d)
{
  row_kernel<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(in, out, n, d);
}
"""

LAYERNORM = """\
#include <cuda_runtime.h>
__global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y, int rows, int dim) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float mean = 0.0f;
    for (int i = 0; i < dim; i++) mean += x[r * dim + i];
    mean /= dim;
    float var = 0.0f;
    for (int i = 0; i < dim; i++) {
        float d = x[r * dim + i] - mean;
        var += d * d;
    }
    float inv = rsqrtf(var / dim + 1e-5f);
    for (int i = 0; i < dim; i++) {
        y[r * dim + i] = (x[r * dim + i] - mean) * inv * gamma[i] + beta[i];
    }
}
extern "C" void solve(const float* x, const float* gamma, const float* beta, float* y, int rows, int dim) {
    const int threads = 128;
    const int blocks = (rows + threads - 1) / threads;
    layernorm<<<blocks, threads>>>(x, gamma, beta, y, rows, dim);
}
"""

EXTREMES = """\
#include <cuda_runtime.h>
__global__ void extremes(const float* x, float* y, int rows, int cols) {
    size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) { return; }
    float top = x[row * cols], low = x[row * cols];
    for (int c = 0; c < cols; ++c) {
        top = fmaxf(top, x[row * cols + c]);
        low = fminf(low, x[row * cols + c]);
    }
    y[2 * row] = top;
    y[2 * row + 1] = low;
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    extremes<<<(rows + 255) / 256, 256>>>(x, y, rows, cols);
}
"""

SCALE_SHIFT = """\
#include <cuda_runtime.h>
__global__ void scale_shift(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        y[i] = x[i] * 2.0f + 1.0f;
    }
}
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    scale_shift<<<64, 256>>>(x, y, rows * cols);
}
"""

TRANSPOSE_WRITES = """\
#include <cuda_runtime.h>
__global__ void transpose(const float* a, float* b, int h, int w) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= h || j >= w) return;
    b[j * h + i] = a[i * w + j];
}
extern "C" void solve(const float* a, float* b, int h, int w) {
    transpose<<<dim3((h + 31) / 32, (w + 7) / 8), dim3(32, 8)>>>(a, b, h, w);
}
"""

MATMUL_TRANSPOSED = """\
#include <cuda_runtime.h>
__global__ void gemm(const float *lhs, const float *rhs, float *dst, int m, int n, int k)
{
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x >= n || y >= m) return;
  float acc = 0;
  for (int t = 0; t < k; ++t)
    acc = fmaf(lhs[y * k + t], rhs[x * k + t], acc);
  dst[y * n + x] = acc;
}
extern "C" void solve(const float *lhs, const float *rhs, float *dst, int m, int n, int k)
{
  dim3 block(32, 8), grid((n + 31) / 32, (m + 7) / 8);
  gemm<<<grid, block>>>(lhs, rhs, dst, m, n, k);
}
"""

DENSE = """\
#include <cuda_runtime.h>
__global__ void dense(const float* x, const float* w, const float* bias, float* y, int M, int N, int K) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        float acc = bias[col];
        for (int p = 0; p < K; p++) {
            acc += x[row * K + p] * w[p * N + col];
        }
        y[row * N + col] = fmaxf(acc, 0.0f);
    }
}
extern "C" void solve(const float* x, const float* w, const float* bias, float* y, int M, int N, int K) {
    dense<<<dim3((N + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(x, w, bias, y, M, N, K);
}
"""

REDUCTION_HALVES = """\
#include <cuda_runtime.h>
__global__ void row_sum(const float* x, float* sums, int cols) {
    __shared__ float buf[128];
    int tid = threadIdx.x;
    int row = blockIdx.x;
    float acc = 0.0f;
    for (int c = tid; c < cols; c += blockDim.x) acc += x[row * cols + c];
    buf[tid] = acc;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            buf[tid] += buf[tid + s];
        }
        __syncthreads();
    }
    if (tid == 0) sums[row] = buf[0];
}
extern "C" void solve(const float* x, float* sums, int rows, int cols) {
    row_sum<<<rows, 128>>>(x, sums, cols);
}
"""

ROW_SHAPES = [[1, 1], [3, 5], [9, 64], [5, 133], [2, 1028], [2, 517], [0, 8]]
LONG = [[1, 16388], [1, 16387]]
PLANES = [[1, 1], [3, 5], [70, 33], [33, 100], [0, 8], [1, 70]]

# name -> (source, problem, shapes)
TOUCHED = {
    "softmax": (SOFTMAX, "softmax", ROW_SHAPES),
    "softmax_pointers": (SOFTMAX_POINTERS, "softmax", ROW_SHAPES),
    "rmsnorm": (RMSNORM, "rmsnorm", ROW_SHAPES),
    "layernorm": (LAYERNORM, "layernorm", ROW_SHAPES),
    "extremes": (EXTREMES, "row_extremes", ROW_SHAPES),
    "elementwise": (ELEMENTWISE, "bias_gelu", ROW_SHAPES),
    "scale_shift": (SCALE_SHIFT, "scale_shift", ROW_SHAPES),
    "reduction": (REDUCTION, "row_sum", ROW_SHAPES),
    "reduction_halves": (REDUCTION_HALVES, "row_sum", ROW_SHAPES),
    "transpose": (TRANSPOSE, "transpose", PLANES),
    "transpose_writes": (TRANSPOSE_WRITES, "transpose", PLANES),
    "matmul": (MATMUL, "matmul", MATMUL_SHAPES),
    "matmul_transposed": (MATMUL_TRANSPOSED, "matmul_bt", MATMUL_SHAPES),
    "dense": (DENSE, "dense", MATMUL_SHAPES),
}
