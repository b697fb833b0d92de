// One launch of a candidate in a process of its own, for tools that watch a process from the start, such as
// compute-sanitizer. Every buffer is an allocation of its own, so that one element too far is out of bounds.
//
// usage: standalone SHIM KERNEL PLAN
//   PLAN: 64-bit words: columns, then per column its kind and its value, then the contents of the inputs in their order
//         kind 0: bits of a scalar; 1: bytes of an output; 2: bytes of an input, whose contents follow; 3: the stream
//   exit status 0: launched and finished; 3: a CUDA error, named on standard output; 4: something cannot be loaded
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

int main(int count, char** arguments) {
    if (count != 4) return 64;
    auto loop = reinterpret_cast<Loop>(find(arguments[1], "kernelteam_loop"));
    void* entry = find(arguments[2], "solve");
    std::ifstream plan(arguments[3], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(plan)), std::istreambuf_iterator<char>());
    const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
    const uint64_t columns = words[0];
    const char* contents = bytes.data() + (1 + 2 * columns) * sizeof(uint64_t);
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
    return 0;
}
