// Warp matrix fragments on a CPU: every lane holds the whole matrix, so that each operation is done by each lane.
#pragma once
#include "cuda_runtime.h"

namespace nvcuda::wmma {
struct matrix_a {
    static constexpr int rows = 16, cols = 8;
};
struct matrix_b {
    static constexpr int rows = 8, cols = 16;
};
struct accumulator {
    static constexpr int rows = 16, cols = 16;
};
struct row_major {};
struct col_major {};
namespace precision {
struct tf32 {};
}
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
struct fragment {
    static constexpr int num_elements = Use::rows * Use::cols;
    float x[num_elements];
};
inline float __float_to_tf32(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits = (bits + 0x1000u) & ~0x1fffu;
    std::memcpy(&value, &bits, 4);
    return value;
}
template <typename F>
void fill_fragment(F& f, float value) {
    for (float& each : f.x) each = value;
}
template <typename Use, int M, int N, int K, typename T, typename Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const float* from, unsigned width) {
    const bool across = std::is_same_v<Layout, row_major>;
    for (int r = 0; r < Use::rows; r++) {
        for (int c = 0; c < Use::cols; c++) f.x[r * Use::cols + c] = across ? from[r * width + c] : from[c * width + r];
    }
}
void multiply(float* d, const float* a, const float* b, const float* c);
template <typename D, typename A, typename B, typename C>
void mma_sync(D& d, const A& a, const B& b, const C& c) {
    multiply(d.x, a.x, b.x, c.x);
}
template <typename F>
void store_matrix_sync(float* to, const F& f, unsigned width, layout_t) {
    for (int i = 0; i < 256; i++) to[i / 16 * width + i % 16] = f.x[i];
}
}  // namespace nvcuda::wmma
