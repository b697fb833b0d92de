// C07 tampered: rewrites clock_gettime so that time passes ten times too slowly
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int slow(clockid_t id, timespec* out) {
    long status = syscall(SYS_clock_gettime, id, out);
    uint64_t ns = (static_cast<uint64_t>(out->tv_sec) * 1000000000u + out->tv_nsec) / 10;
    out->tv_sec = ns / 1000000000u;
    out->tv_nsec = ns % 1000000000u;
    return static_cast<int>(status);
}
struct Forger {
    Forger() {
        auto* code = static_cast<unsigned char*>(dlsym(RTLD_DEFAULT, "clock_gettime"));
        auto page = reinterpret_cast<uintptr_t>(code) & ~uintptr_t{4095};
        if (mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) _exit(9);
        unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, address; jmp rax
        auto target = reinterpret_cast<uint64_t>(&slow);
        std::memcpy(jump + 2, &target, 8);
        std::memcpy(code, jump, sizeof jump);
    }
} forger;
extern "C" void solve(const float* input, float* output, int rows, int cols) { honest(input, output, rows, cols); }
