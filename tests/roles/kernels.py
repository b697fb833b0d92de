"""C++ kernels written in several hands: what the transforms must handle, and what they must leave alone."""

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
MATMUL = (EXAMPLES / "matmul_cpu" / "matmul.cpp").read_text()
SOFTMAX = (EXAMPLES / "softmax_cpu" / "softmax.cpp").read_text()
RMSNORM = (EXAMPLES / "rmsnorm_cpu" / "rmsnorm.cpp").read_text()

MATMUL_SIZE_T = """\
#include <cmath>
#include <cstddef>
extern "C" void solve(const float *lhs, const float *rhs, float *dst, int rows, int cols, int depth)
{
  for (size_t y = 0; y < (size_t)rows; ++y)
    for (size_t x = 0; x < (size_t)cols; ++x)
    {
      float acc = 0.f;
      for (size_t t = 0; t < (size_t)depth; ++t)
        acc = fmaf(lhs[y * depth + t], rhs[t * cols + x], acc);
      dst[y * cols + x] = acc;
    }
}
"""

MATMUL_ROWS = """\
extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
    for (int i = 0; i < m; i += 1) {
        const float* row = a + (long)i * k;
        float* out = &c[i * n];
        for (int j = 0; j < n; j++) {
            float s = 0;
            for (int p = 0; p < k; p++) s = s + row[p] * b[p * n + j];
            out[j] = s;
        }
    }
}
"""

MATMUL_TRANSPOSED = """\
#include <cstdint>
extern "C" void solve(const float* a, const float* b, float* c, int m, int n, int k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float s = 0.0f;
            for (int64_t p = 0; p < k; p++) {
                s += b[j * k + p] * a[i * k + p];
            }
            c[i * n + j] = s;
        }
    }
}
"""

MATMUL_IKJ = """\
extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            C[i * N + j] = 0.0f;
        }
        for (int k = 0; k < K; k++) {
            const float a = A[i * K + k];
            for (int j = 0; j < N; j++) {
                C[i * N + j] += a * B[k * N + j];
            }
        }
    }
}
"""

SUM_WITH_DIRECTIVE = """\
#include <cmath>
extern "C" void solve(const float* x, const float* w, float* y, int rows, int hidden, float eps) {
    for (int r = 0; r < rows; r++) {
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int h = 0; h < hidden; h++) {
            sum += x[r * hidden + h] * x[r * hidden + h];
        }
        #pragma omp simd
        for (int h = 0; h < hidden; h++) {
            y[r * hidden + h] = x[r * hidden + h] / std::sqrt(sum / hidden + eps) * w[h];
        }
    }
}
"""

DENSE = """\
#include <algorithm>
// A dense layer with bias and ReLU.
extern "C" void solve(const float* x, const float* w, const float* bias, float* y, int m, int n, int k) {
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            float acc = bias[j];
            for (int p = 0; p < k; ++p) {
                acc += x[i * k + p] * w[p * n + j];
            }
            const float positive = std::max(acc, 0.0f);
            y[i * n + j] = positive;
        }
    }
}
"""

DISTANCE = """\
extern "C" void solve(const float* a, const float* b, float* d, int m, int n, int k) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int p = 0; p < k; p++) {
                sum += (a[i * k + p] - b[p * n + j]) * (a[i * k + p] - b[p * n + j]);
            }
            d[i * n + j] = sum;
        }
    }
}
"""

SOFTMAX_ROWS = """\
#include <algorithm>
#include <cmath>
extern "C" void solve(const float *in, float *out, int n, int d)
{
  for (int row = 0; row < n; ++row)
  {
    const float *src = in + row * d;
    float *dst = out + row * d;
    float peak = src[0];
    for (int i = 0; i < d; ++i)
      peak = std::max(peak, src[i]);
    float total = 0.f;
    for (int i = 0; i < d; ++i)
    {
      const float e = expf(src[i] - peak);
      total += e;
    }
    for (int i = 0; i < d; ++i)
      dst[i] = expf(src[i] - peak) / total;
  }
}
"""

RMSNORM_DOUBLE = """\
#include <cmath>
extern "C" void solve(const float* x, const float* g, float* y, int rows, int n, float eps) {
    for (int r = 0; r < rows; r++) {
        const float* row = x + r * n;
        double ss = 0.0;
        for (int i = 0; i < n; i++) {
            const float v = row[i];
            ss += v * v;
        }
        for (int i = 0; i < n; i++) {
            y[r * n + i] = row[i] * (1.0f / sqrtf(float(ss) / n + eps)) * g[i];
        }
    }
}
"""

EXTREMES = """\
#include <cmath>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; ++r) {
        float top = x[r * cols];
        float low = x[r * cols];
        for (int c = 0; c < cols; ++c) top = x[r * cols + c] > top ? x[r * cols + c] : top;
        for (int c = 0; c < cols; ++c) low = std::fmin(x[r * cols + c], low);
        y[r * 2] = top;
        y[r * 2 + 1] = low;
    }
}
"""

TRANSPOSE = """\
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            y[c * rows + r] = x[r * cols + c];
        }
    }
}
"""

SCALE_SHIFT = """\
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            y[r * cols + c] = x[r * cols + c] * 2.0f;
        }
        for (int h = 0; h < cols; h++) {
            y[r * cols + h] = y[r * cols + h] + 1.0f;
        }
    }
}
"""

MATMUL_SHAPES = [[1, 1, 1], [7, 5, 3], [13, 33, 17], [97, 31, 13], [6, 16, 300], [3, 4, 0]]
ROW_SHAPES = [[1, 1], [3, 5], [7, 16], [5, 65], [2, 133]]

# name -> (source, problem, shapes)
TOUCHED = {
    "matmul": (MATMUL, "matmul", MATMUL_SHAPES),
    "matmul_size_t": (MATMUL_SIZE_T, "matmul", MATMUL_SHAPES),
    "matmul_rows": (MATMUL_ROWS, "matmul", MATMUL_SHAPES),
    "matmul_transposed": (MATMUL_TRANSPOSED, "matmul_bt", MATMUL_SHAPES),
    "matmul_ikj": (MATMUL_IKJ, "matmul", MATMUL_SHAPES),
    "sum_with_directive": (SUM_WITH_DIRECTIVE, "rmsnorm", ROW_SHAPES),
    "dense": (DENSE, "dense", MATMUL_SHAPES),
    "distance": (DISTANCE, "distance", MATMUL_SHAPES),
    "softmax": (SOFTMAX, "softmax", ROW_SHAPES),
    "softmax_rows": (SOFTMAX_ROWS, "softmax", ROW_SHAPES),
    "rmsnorm": (RMSNORM, "rmsnorm", ROW_SHAPES),
    "rmsnorm_double": (RMSNORM_DOUBLE, "rmsnorm", ROW_SHAPES),
    "extremes": (EXTREMES, "row_extremes", ROW_SHAPES),
    "transpose": (TRANSPOSE, "transpose", ROW_SHAPES),
    "scale_shift": (SCALE_SHIFT, "scale_shift", ROW_SHAPES),
}
