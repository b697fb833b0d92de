// What one core of this machine can do at most: multiply-adds by type, bytes through the first-level cache, and a copy of
// memory. Prints "name value" lines, per second. Trusted: compiled and run by the judge, never with a candidate.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__AVX512F__)
constexpr int WIDTH = 64;
#elif defined(__AVX__)
constexpr int WIDTH = 32;
#else
constexpr int WIDTH = 16;
#endif
constexpr int CHAINS = 12;        // independent accumulators: enough to hide the latency of a multiply-add
constexpr int WINDOWS = 400;      // short windows, of which the best counts: other programs disturb only some of them
constexpr int CACHE_BYTES = 8192; // of each of three arrays, well within a first-level cache
constexpr size_t COPY_BYTES = size_t(128) << 20;

using Clock = std::chrono::steady_clock;

template <class Work> double best_seconds(int windows, Work work) {
    double best = 1e30;
    for (int i = 0; i < windows; i++) {
        auto start = Clock::now();
        work();
        double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (seconds < best) best = seconds;
    }
    return best;
}

template <class T> double multiply_adds() {
    typedef T Vector __attribute__((vector_size(WIDTH)));
    constexpr int lanes = WIDTH / sizeof(T), steps = 2000;
    Vector sums[CHAINS], a, b;
    for (int lane = 0; lane < lanes; lane++) a[lane] = T(0.999), b[lane] = T(1e-3);
    for (auto& sum : sums) sum = a;
    double seconds = best_seconds(WINDOWS, [&] {
        for (int step = 0; step < steps; step++) {
#pragma GCC unroll 12
            for (int chain = 0; chain < CHAINS; chain++) sums[chain] = sums[chain] * a + b;
        }
        for (auto& sum : sums) asm volatile("" : "+m"(sum));
    });
    return 2.0 * lanes * CHAINS * steps / seconds;
}

typedef float Line __attribute__((vector_size(WIDTH)));
constexpr int LINES = CACHE_BYTES / WIDTH;
// Staggered within a page, so that no load seems to depend on a store 4 KiB away.
struct Arrays {
    alignas(4096) Line left[LINES];
    alignas(64) char gap[1344];
    Line right[LINES];
    alignas(64) char other_gap[1344];
    Line both[LINES];
};
static Arrays arrays;

double cache_rate() {
    constexpr int rounds = 50;
    auto* left = arrays.left;
    auto* right = arrays.right;
    auto* both = arrays.both;
    double seconds = best_seconds(WINDOWS, [=] {
        for (int round = 0; round < rounds; round++) {
#pragma GCC unroll 8
            for (int i = 0; i < LINES; i++) both[i] = left[i] + right[i];
            asm volatile("" ::"r"(left), "r"(right), "r"(both) : "memory");
        }
    });
    double read = best_seconds(WINDOWS, [=] {
        for (int round = 0; round < rounds; round++) {
            Line sums[8] = {};
#pragma GCC unroll 1
            for (int i = 0; i < LINES; i += 8) {
#pragma GCC unroll 8
                for (int lane = 0; lane < 8; lane++) sums[lane] += left[i + lane];
            }
            for (auto& sum : sums) asm volatile("" : "+m"(sum) : "r"(left) : "memory");
        }
    });
    double added = 3.0 * CACHE_BYTES * rounds / seconds, summed = 1.0 * CACHE_BYTES * rounds / read;
    return added > summed ? added : summed;
}

double copy_rate() {
    char* from = static_cast<char*>(std::malloc(COPY_BYTES));
    char* to = static_cast<char*>(std::malloc(COPY_BYTES));
    if (!from || !to) return 0.0;
    std::memset(from, 1, COPY_BYTES);
    std::memset(to, 2, COPY_BYTES);
    double seconds = best_seconds(4, [&] {
        std::memcpy(to, from, COPY_BYTES);
        asm volatile("" ::"r"(to) : "memory");
    });
    return 2.0 * COPY_BYTES / seconds;
}

int main() {
    std::printf("float32_flops_per_s %.6g\n", multiply_adds<float>());
    std::printf("float64_flops_per_s %.6g\n", multiply_adds<double>());
    std::printf("cache_bytes_per_s %.6g\n", cache_rate());
    std::printf("memory_bytes_per_s %.6g\n", copy_rate());
}
