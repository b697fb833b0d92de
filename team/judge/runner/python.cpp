// The sandbox for a Python process: what the native runners take from themselves, as one call from ctypes. The process has
// imported everything that is trusted by then; `readable` and `writable` are paths, separated by colons.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sandbox.h"

namespace {

constexpr uint64_t kFiles = 1024;
constexpr uint64_t kFileSize = 1ull << 30;  // of one file that a compiler may write

std::vector<std::string> split(const char* text) {
    std::vector<std::string> found;
    for (const char* at = text; *at != '\0';) {
        const char* end = strchrnul(at, ':');
        if (end != at) found.emplace_back(at, end);
        at = *end == '\0' ? end : end + 1;
    }
    return found;
}

}  // namespace

extern "C" void kernelteam_seal(int keep_uid, uint64_t address_space, const char* readable, const char* writable,
                                int starts, char* layers, uint64_t size) {
    std::string active = sandbox::begin(keep_uid != 0);
    uint64_t space = address_space == 0 ? RLIM_INFINITY : address_space;
    sandbox::limits(space, kFiles, active.find(" uid") != std::string::npos, starts ? kFileSize : 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) active += " no_new_privs";
    std::vector<std::string> devices{"/dev/null", "/dev/urandom"};
    if (sandbox::landlock(devices, split(readable), split(writable))) active += " landlock";
    if (sandbox::filter_calls(starts != 0)) active += " seccomp";
    strncpy(layers, active.c_str(), size - 1);
}
