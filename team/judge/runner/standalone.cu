// A candidate in a process of its own, for tools that watch a process from the start: compute-sanitizer, Nsight Compute.
// Every buffer is an allocation of its own, so that one element too far is out of bounds.
//
// usage: standalone SHIM [LIBRARY:...]KERNEL PLAN [once | profile | time] [SECONDS [READABLE:... WRITABLE:... DEVICE:...]]
//   once: one launch. profile: one call to warm up, then one between cudaProfilerStart and Stop. time: calls from a cold
//   L2 between two events each, at most 50 and at most two seconds of them; the last line on standard output is
//   "median_ns NUMBER". All but the first end themselves after SECONDS and, where the three lists of paths are given,
//   enter the sandbox before the kernel is loaded; "layers NAMES" on standard output says which layers are active.
//   PLAN: see standalone.h
//   exit status 0: launched and finished; 3: a CUDA error, named on standard output; 4: something cannot be loaded
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include "standalone.h"

using standalone::Loop;

static void require(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("CUDA error %s\n", cudaGetErrorName(error));
    std::exit(3);
}

// Reads what is larger than any L2, so that none of the inputs is in it and nothing waits to be written back.
__global__ void sweep(const uint4* from, size_t count, unsigned* never) {
    unsigned seen = 0;
    for (size_t at = blockIdx.x * size_t{blockDim.x} + threadIdx.x; at < count; at += size_t{gridDim.x} * blockDim.x) {
        seen |= from[at].x;
    }
    if (seen == 0xDEADBEEFU) *never = seen;
}

static void time_calls(Loop loop, void* entry, const uint64_t* row) {
    constexpr size_t kFlush = size_t{256} << 20;  // bytes; more than any L2
    constexpr int kMost = 50;
    constexpr float kEnough = 2000.0F;  // milliseconds
    void* flush = nullptr;
    cudaEvent_t start, stop;
    require(cudaMalloc(&flush, kFlush));
    require(cudaMemset(flush, 0, kFlush));
    require(cudaEventCreate(&start));
    require(cudaEventCreate(&stop));
    std::vector<float> taken;
    float total = 0.0F;
    while (taken.size() < kMost && (taken.size() < 3 || total < kEnough)) {
        sweep<<<1024, 256, 0, cudaStreamPerThread>>>(static_cast<uint4*>(flush), kFlush / sizeof(uint4),
                                                     static_cast<unsigned*>(flush));
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
    auto loop = reinterpret_cast<Loop>(standalone::find(arguments[1], "kernelteam_loop"));
    const standalone::Plan plan(arguments[3]);
    if (count == 9) {
        require(cudaFree(nullptr));  // makes the context: a watching tool opens what it needs
        standalone::confine(arguments[6], arguments[7], arguments[8]);
    }
    void* entry = standalone::find(arguments[2], "solve");
    std::vector<uint64_t> row(plan.columns());
    const char* contents = plan.contents();
    for (uint64_t column = 0; column < row.size(); column++) {
        const uint64_t kind = plan.kind(column), value = plan.value(column);
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
