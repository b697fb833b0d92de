// What the standalone programs share: loading, the launch plan, lists of paths.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sandbox.h"

namespace standalone {

using Loop = void (*)(void* entry, const uint64_t* row, uint64_t launches);

inline std::vector<std::string> parts(const std::string& list) {
    std::vector<std::string> found;
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(':', at), list.size());
        found.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return found;
}

// What `symbol` is in the last of the listed objects; those before it are libraries that it was linked with.
inline void* find(const std::string& listed, const char* symbol) {
    void* library = nullptr;
    for (const std::string& path : parts(listed)) {
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) break;
    }
    void* found = library == nullptr ? nullptr : dlsym(library, symbol);
    if (found == nullptr) {
        std::printf("%s\n", dlerror());
        std::exit(4);
    }
    return found;
}

// 64-bit words: columns, then per column its kind and its value, then the contents of the inputs in their order.
// kind 0: bits of a scalar; 1: bytes of an output; 2: bytes of an input, whose contents follow; 3: the stream
class Plan {
  public:
    explicit Plan(const char* path) {
        std::ifstream stream(path, std::ios::binary);
        bytes_.assign((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    }
    uint64_t columns() const { return word(0); }
    uint64_t kind(uint64_t column) const { return word(1 + 2 * column); }
    uint64_t value(uint64_t column) const { return word(2 + 2 * column); }
    const char* contents() const { return bytes_.data() + (1 + 2 * columns()) * sizeof(uint64_t); }

  private:
    uint64_t word(uint64_t at) const {
        uint64_t found;
        std::memcpy(&found, bytes_.data() + at * sizeof found, sizeof found);
        return found;
    }
    std::vector<char> bytes_;
};

// Enter the sandbox's second half; "layers NAMES" on standard output says which are active.
inline void confine(const char* readable, const char* writable, const char* devices) {
    std::string active = "rlimits";
    sandbox::limits(RLIM_INFINITY, 1024, false, uint64_t{1} << 30);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) active += " no_new_privs";
    if (sandbox::landlock(parts(devices), parts(readable), parts(writable))) active += " landlock";
    if (sandbox::filter_calls()) active += " seccomp";
    std::printf("layers %s\n", active.c_str());
    std::fflush(stdout);
}

}  // namespace standalone
