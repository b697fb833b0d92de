// CUDA on a CPU, for tests of meaning and not of speed. What a kernel sees of it; emulator.cpp does the work.
#pragma once
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define CUDART_INF_F INFINITY

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
typedef void* cudaStream_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <typename Kernel>
int cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int) { return 0; }

template <typename T>
T max(T a, T b) { return a < b ? b : a; }
template <typename T>
T min(T a, T b) { return b < a ? b : a; }
template <typename T>
T __ldg(const T* at) { return *at; }
template <typename T>
T __ldcs(const T* at) { return *at; }
template <typename T>
void __stcs(T* at, T value) { *at = value; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

namespace emulator {
enum State { READY, AT_BARRIER, AT_SHUFFLE, DONE };
extern size_t current;  // the running thread's number within its block
void wait(State state);
void run(dim3 grid, dim3 block, void (*kernel)(void*), void* arguments);
// What ``partner`` gave at the shuffle where ``size`` bytes of ``value`` are given; its own where there is no partner.
void shuffle(void* value, size_t size, size_t partner);
// The matrix instruction m16n8k8 of a warp: lane 4g + t gives A(g or g + 8, t or t + 4) and B(t or t + 4, g) and gets
// its sums (g or g + 8, 2t or 2t + 1) with the product added.
void mma_16x8x8(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
// m16n8k16 of bfloat16: lane 4g + t gives pairs of terms, A(g or g + 8, 2t and 2t + 1, or 8 more) and B(as many, g).
void mma_16x8x16(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
// The nearest bfloat16 of a finite value, ties to even.
inline unsigned bf16(float value) {
    const unsigned bits = __float_as_uint(value);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

template <typename Kernel>
void launch(dim3 grid, dim3 block, Kernel kernel) {
    run(grid, block, [](void* self) { (*static_cast<Kernel*>(self))(); }, &kernel);
}
template <typename T>
T shuffled(T value, size_t partner) {
    shuffle(&value, sizeof value, partner);
    return value;
}
}  // namespace emulator

inline void __syncthreads() { emulator::wait(emulator::AT_BARRIER); }
inline void __syncwarp(unsigned = ~0u) { emulator::wait(emulator::AT_SHUFFLE); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) { return emulator::shuffled(value, emulator::current ^ mask); }
template <typename T>
T __shfl_down_sync(unsigned, T value, int by) {
    const size_t partner = emulator::current + by;
    return emulator::shuffled(value, partner / 32 == emulator::current / 32 ? partner : emulator::current);
}
