// A candidate in a process of its own, for tools that watch a process from the start: compute-sanitizer, Nsight Compute.
// Every buffer is an allocation of its own, so that one element too far is out of bounds.
//
// usage: standalone SHIM KERNEL PLAN [once | profile | time] [SECONDS [READABLE:... WRITABLE:... DEVICE:...]]
//   once: one launch. profile: one call to warm up, then one between cudaProfilerStart and Stop. time: calls from a cold
//   L2 between two events each, at most 50 and at most two seconds of them; the last line on standard output is
//   "median_ns NUMBER". All but the first end themselves after SECONDS and, where the three lists of paths are given,
//   enter the sandbox before the kernel is loaded; "layers NAMES" on standard output says which layers are active.
//   PLAN: 64-bit words: columns, then per column its kind and its value, then the contents of the inputs in their order
//         kind 0: bits of a scalar; 1: bytes of an output; 2: bytes of an input, whose contents follow; 3: the stream
//   exit status 0: launched and finished; 3: a CUDA error, named on standard output; 4: something cannot be loaded
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "sandbox.h"

using Loop = void (*)(void* entry, const uint64_t* row, uint64_t launches);

static void require(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("CUDA error %s\n", cudaGetErrorName(error));
    std::exit(3);
}

static void* find(const char* path, const char* symbol) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* found = library == nullptr ? nullptr : dlsym(library, symbol);
    if (found == nullptr) {
        std::printf("%s\n", dlerror());
        std::exit(4);
    }
    return found;
}

static std::vector<std::string> parts(const std::string& list) {
    std::vector<std::string> found;
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(':', at), list.size());
        found.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return found;
}

// The context exists and the watching tool has what it opened; from here on there is nothing new to open.
static void confine(const char* readable, const char* writable, const char* devices) {
    require(cudaFree(nullptr));
    std::string active = "rlimits";
    sandbox::limits(RLIM_INFINITY, 1024, false, uint64_t{1} << 30);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) active += " no_new_privs";
    if (sandbox::landlock(parts(devices), parts(readable), parts(writable))) active += " landlock";
    if (sandbox::filter_calls()) active += " seccomp";
    std::printf("layers %s\n", active.c_str());
    std::fflush(stdout);
}

static void time_calls(Loop loop, void* entry, const uint64_t* row) {
    constexpr size_t kFlush = size_t{256} << 20;  // bytes; more than any L2
    constexpr int kMost = 50;
    constexpr float kEnough = 2000.0F;  // milliseconds
    void* flush = nullptr;
    cudaEvent_t start, stop;
    require(cudaMalloc(&flush, kFlush));
    require(cudaEventCreate(&start));
    require(cudaEventCreate(&stop));
    std::vector<float> taken;
    float total = 0.0F;
    while (taken.size() < kMost && (taken.size() < 3 || total < kEnough)) {
        require(cudaMemsetAsync(flush, static_cast<int>(taken.size()), kFlush, cudaStreamPerThread));
        require(cudaEventRecord(start, cudaStreamPerThread));
        loop(entry, row, 1);
        require(cudaEventRecord(stop, cudaStreamPerThread));
        require(cudaDeviceSynchronize());
        float milliseconds = 0.0F;
        require(cudaEventElapsedTime(&milliseconds, start, stop));
        taken.push_back(milliseconds);
        total += milliseconds;
    }
    std::nth_element(taken.begin(), taken.begin() + taken.size() / 2, taken.end());
    std::printf("median_ns %.1f\n", taken[taken.size() / 2] * 1e6);
    std::fflush(stdout);
}

int main(int count, char** arguments) {
    const std::string mode = count > 4 ? arguments[4] : "once";
    if (count != 4 && count != 6 && count != 9) return 64;
    if (count > 5) alarm(static_cast<unsigned>(std::atoi(arguments[5])));
    auto loop = reinterpret_cast<Loop>(find(arguments[1], "kernelteam_loop"));
    std::ifstream plan(arguments[3], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(plan)), std::istreambuf_iterator<char>());
    const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
    const uint64_t columns = words[0];
    const char* contents = bytes.data() + (1 + 2 * columns) * sizeof(uint64_t);
    if (count == 9) confine(arguments[6], arguments[7], arguments[8]);
    void* entry = find(arguments[2], "solve");
    std::vector<uint64_t> row(columns);
    for (uint64_t column = 0; column < columns; column++) {
        const uint64_t kind = words[1 + 2 * column], value = words[2 + 2 * column];
        row[column] = kind == 3 ? reinterpret_cast<uint64_t>(cudaStreamPerThread) : value;
        if (kind != 1 && kind != 2) continue;
        void* buffer = nullptr;
        require(cudaMalloc(&buffer, value));
        row[column] = reinterpret_cast<uint64_t>(buffer);
        if (kind != 2) continue;
        require(cudaMemcpy(buffer, contents, value, cudaMemcpyHostToDevice));
        contents += value;
    }
    loop(entry, row.data(), 1);
    require(cudaGetLastError());
    require(cudaDeviceSynchronize());
    if (mode == "profile") {
        require(cudaProfilerStart());
        loop(entry, row.data(), 1);
        require(cudaGetLastError());
        require(cudaDeviceSynchronize());
        require(cudaProfilerStop());
    } else if (mode == "time") {
        time_calls(loop, entry, row.data());
    }
    return 0;
}
