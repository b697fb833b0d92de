// Asynchronous copies on a CPU: a copy is done when its thread waits for it, no earlier, so that nothing may rely on more.
#pragma once
#include "cuda_runtime.h"

namespace emulator {
struct Copy {
    void* to;
    const void* from;
    size_t size, zeros, group;
};
inline std::vector<Copy> copies[1024];
inline size_t groups[1024];
}  // namespace emulator

inline void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros = 0) {
    if ((size != 4 && size != 8 && size != 16) || reinterpret_cast<size_t>(to) % size ||
        (zeros < size && reinterpret_cast<size_t>(from) % size)) {
        std::fprintf(stderr, "emulator: an asynchronous copy that is not aligned to its size\n");
        std::abort();
    }
    const size_t self = emulator::current;
    emulator::copies[self].push_back({to, from, size, zeros, emulator::groups[self]});
}
inline void __pipeline_commit() { emulator::groups[emulator::current]++; }
inline void __pipeline_wait_prior(size_t left) {
    const size_t self = emulator::current;
    std::vector<emulator::Copy> later;
    for (const auto& each : emulator::copies[self]) {
        if (each.group + left >= emulator::groups[self]) {
            later.push_back(each);
            continue;
        }
        std::memcpy(each.to, each.from, each.size - each.zeros);
        std::memset(static_cast<char*>(each.to) + each.size - each.zeros, 0, each.zeros);
    }
    emulator::copies[self] = later;
}
