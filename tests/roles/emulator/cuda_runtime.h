// CUDA on a CPU, for tests of meaning and not of speed: every thread of a block is a fibre, blocks run one by one.
// Barriers and shuffles wait as the hardware does; a barrier that some threads never reach ends the process.
#pragma once
#include <ucontext.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

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
inline dim3 threadIdx, blockIdx, blockDim, gridDim;
typedef void* cudaStream_t;

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

namespace emulator {
enum State { READY, AT_BARRIER, AT_SHUFFLE, DONE };
struct Fibre {
    ucontext_t context;
    std::vector<char> stack;
    State state = READY;
    dim3 place;
    double slots[2];
    int turn = 0;
};
inline std::vector<Fibre> fibres;
inline ucontext_t scheduler;
inline size_t current;
inline const std::function<void()>* work;

inline void enter() {
    (*work)();
    fibres[current].state = DONE;
    swapcontext(&fibres[current].context, &scheduler);
}
inline void wait(State state) {
    Fibre& self = fibres[current];
    self.state = state;
    swapcontext(&self.context, &scheduler);
}
inline bool all_wait(size_t first, size_t last, State state) {
    bool any = false;
    for (size_t i = first; i < last; i++) {
        if (fibres[i].state != state && fibres[i].state != DONE) return false;
        any = any || fibres[i].state == state;
    }
    return any;
}
inline bool release(size_t first, size_t last, State state) {
    if (!all_wait(first, last, state)) return false;
    for (size_t i = first; i < last; i++) {
        if (fibres[i].state == state) fibres[i].state = READY;
    }
    return true;
}
inline void run_block() {
    for (;;) {
        bool moved = false, alive = false;
        for (current = 0; current < fibres.size(); current++) {
            if (fibres[current].state != READY) continue;
            threadIdx = fibres[current].place;
            swapcontext(&scheduler, &fibres[current].context);
            moved = true;
        }
        for (size_t warp = 0; warp < fibres.size(); warp += 32) {
            moved |= release(warp, warp + 32 < fibres.size() ? warp + 32 : fibres.size(), AT_SHUFFLE);
        }
        moved |= release(0, fibres.size(), AT_BARRIER);
        for (auto& each : fibres) alive |= each.state != DONE;
        if (!alive) return;
        if (!moved) {
            std::fprintf(stderr, "emulator: threads wait for each other\n");
            std::abort();
        }
    }
}
inline void launch(dim3 grid, dim3 block, const std::function<void()>& kernel) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;  // an error on a device; nothing runs
    if (block.x * block.y == 0 || block.x * block.y > 1024) {
        std::fprintf(stderr, "emulator: invalid configuration\n");
        std::abort();
    }
    work = &kernel;
    gridDim = grid;
    blockDim = block;
    for (unsigned number = 0; number < grid.x * grid.y * grid.z; number++) {
        {
            blockIdx = dim3(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
            fibres.resize(block.x * block.y);
            for (size_t i = 0; i < fibres.size(); i++) {
                Fibre& each = fibres[i];
                each.stack.resize(1 << 17);
                each.state = READY;
                each.turn = 0;
                each.place = dim3(i % block.x, i / block.x);
                getcontext(&each.context);
                each.context.uc_stack.ss_sp = each.stack.data();
                each.context.uc_stack.ss_size = each.stack.size();
                each.context.uc_link = &scheduler;
                makecontext(&each.context, enter, 0);
            }
            run_block();
        }
    }
}
template <typename T>
T shuffled(T value, size_t partner) {
    Fibre& self = fibres[current];
    const int turn = self.turn;
    self.turn = 1 - turn;
    std::memcpy(&self.slots[turn], &value, sizeof value);
    wait(AT_SHUFFLE);
    if (partner >= fibres.size()) return value;
    std::memcpy(&value, &fibres[partner].slots[turn], sizeof value);
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
