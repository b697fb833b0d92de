// C07 tampered: swaps the driver's cuEventElapsedTime in the runner's own table of functions for one that halves it
#include <cuda.h>
#include <cstdint>
#include <dlfcn.h>
#include <link.h>
using Elapsed = CUresult (*)(float*, CUevent, CUevent);
static Elapsed real = nullptr;
static CUresult forged(float* ms, CUevent start, CUevent stop) {
    CUresult result = real(ms, start, stop);
    *ms *= 0.5f;
    return result;
}
static int swap(dl_phdr_info* program, size_t, void* wanted) {
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const Elf64_Phdr& part = program->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
        auto* word = reinterpret_cast<void**>((program->dlpi_addr + part.p_vaddr + 7) & ~7ull);
        auto* end = reinterpret_cast<void**>(program->dlpi_addr + part.p_vaddr + part.p_memsz - 8);
        for (; word < end; word++)
            if (*word == wanted) *word = reinterpret_cast<void*>(forged);
    }
    return 1;  // the first one is the program itself
}
__attribute__((constructor)) static void start() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr) return;
    using GetProc = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    auto get = reinterpret_cast<GetProc>(dlsym(driver, "cuGetProcAddress_v2"));
    for (int version : {12000, 12080, 13000}) {
        void* at = nullptr;
        CUdriverProcAddressQueryResult status;
        if (get == nullptr || get("cuEventElapsedTime", &at, version, 0, &status) != CUDA_SUCCESS) continue;
        real = reinterpret_cast<Elapsed>(at);
        dl_iterate_phdr(swap, at);
    }
}
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows, cols); }
