// C = A * B in tiles, with everything that scripts/bench_tuner.py tunes as a constant. Any setting is valid.
#include <cuda_runtime.h>

constexpr int tile_m = 32;   // knob: tile_m in {32, 64, 128}
constexpr int tile_n = 32;   // knob: tile_n in {32, 64, 128}
constexpr int tile_k = 8;    // knob: tile_k in {8, 16, 32}
constexpr int work_m = 4;    // knob: work_m in {4, 8}
constexpr int work_n = 4;    // knob: work_n in {4, 8}
constexpr int unrolled = 1;  // knob: unrolled in {1, 4, 8, 32}
constexpr int skew = 1;      // knob: skew in {1, 2}

constexpr int THREADS = (tile_m / work_m) * (tile_n / work_n);
constexpr int UNROLLED = unrolled, PAD = 4 * (skew - 1);

extern "C" __global__ void __launch_bounds__(THREADS)
product(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ alignas(16) float a_tile[tile_k][tile_m + PAD];
    __shared__ alignas(16) float b_tile[tile_k][tile_n + PAD];
    const int across = threadIdx.x % (tile_n / work_n), down = threadIdx.x / (tile_n / work_n);
    const int row_first = blockIdx.y * tile_m, col_first = blockIdx.x * tile_n;
    float sums[work_m][work_n] = {};
    for (int k_first = 0; k_first < K; k_first += tile_k) {
        for (int at = threadIdx.x; at < tile_m * tile_k; at += THREADS) {
            const int row = row_first + at / tile_k, k = k_first + at % tile_k;
            a_tile[at % tile_k][at / tile_k] = row < M && k < K ? A[row * K + k] : 0.0f;
        }
        for (int at = threadIdx.x; at < tile_k * tile_n; at += THREADS) {
            const int k = k_first + at / tile_n, col = col_first + at % tile_n;
            b_tile[at / tile_n][at % tile_n] = k < K && col < N ? B[k * N + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll UNROLLED
        for (int step = 0; step < tile_k; step++) {
            float a[work_m], b[work_n];
#pragma unroll
            for (int m = 0; m < work_m; m++) a[m] = a_tile[step][down * work_m + m];
#pragma unroll
            for (int n = 0; n < work_n; n++) b[n] = b_tile[step][across * work_n + n];
#pragma unroll
            for (int m = 0; m < work_m; m++) {
#pragma unroll
                for (int n = 0; n < work_n; n++) sums[m][n] += a[m] * b[n];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < work_m; m++) {
#pragma unroll
        for (int n = 0; n < work_n; n++) {
            const int row = row_first + down * work_m + m, col = col_first + across * work_n + n;
            if (row < M && col < N) C[row * N + col] = sums[m][n];
        }
    }
}

extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
    const dim3 grid((N + tile_n - 1) / tile_n, (M + tile_m - 1) / tile_m);
    product<<<grid, THREADS>>>(A, B, C, M, N, K);
}
