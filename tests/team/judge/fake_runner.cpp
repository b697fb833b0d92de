// A stand-in for the CUDA runner on a machine without a GPU: the same messages, C++ kernels, memory files for handles.
#include <cstdint>
#include <ctime>
#include <dlfcn.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "sandbox.h"
#include "wire.h"

using Loop = void (*)(void* entry, const uint64_t* row, uint64_t launches);

struct Set {
    void* entry = nullptr;
    uint64_t launches = 0;
    std::vector<uint64_t> words;
};

static char* arena = nullptr;
static uint64_t arena_size = 0;
static Loop loop = nullptr;
static std::vector<void*> entries;
static std::map<uint64_t, Set> sets;

static uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

static void open_arena(wire::Message& message) {
    if (arena != nullptr) munmap(arena, arena_size);
    arena = nullptr;
    int fd = open(message["handle"].bytes.c_str(), O_RDWR);
    arena_size = message["size"].number;
    void* at = fd < 0 ? MAP_FAILED : mmap(nullptr, arena_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        wire::Writer().word("error", "cudaErrorInvalidValue, cannot be opened").send(61);
        return;
    }
    arena = static_cast<char*>(at);
    wire::Writer().number("ok", 1).send(61);
}

static void* find(const std::string& bytes, const char* symbol) {
    int fd = memfd_create("artifact", MFD_CLOEXEC);
    wire::write_exactly(fd, bytes.data(), bytes.size());
    void* library = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : dlsym(library, symbol);
}

static void load(wire::Message& message) {
    loop = reinterpret_cast<Loop>(find(message["shim"].bytes, "kernelteam_loop"));
    bool found = loop != nullptr;
    uint64_t at = 0, size = 0;
    const std::string& sizes = message["sizes"].bytes;
    for (uint64_t i = 0; i < sizes.size(); i += sizeof size, at += size) {
        memcpy(&size, sizes.data() + i, sizeof size);
        entries.push_back(find(message["kernels"].bytes.substr(at, size), "solve"));
        found = found && entries.back() != nullptr;
    }
    if (!found) wire::Writer().word("error", "not found").send(61);
    else wire::Writer().number("ok", 1).word("layers", "none").send(61);
}

static void stage(wire::Message& message) {
    Set& set = sets[message["set"].number];
    uint64_t columns = message["columns"].number, pointers = message["pointers"].number;
    const std::string& words = message["words"].bytes;
    set.launches = message["launches"].number;
    set.entry = entries[message["kernel"].number];
    set.words.resize(words.size() / sizeof(uint64_t));
    memcpy(set.words.data(), words.data(), words.size());
    for (size_t i = 0; i < set.words.size(); i++)
        if (pointers >> (i % columns) & 1) set.words[i] += reinterpret_cast<uint64_t>(arena);
    uint64_t regime = message["regime"].number;
    wire::Writer().number("ok", 1).number("regime", regime).number("nodes", set.launches).word("why", "").send(61);
}

static void go(wire::Message& message, uint64_t replays) {
    Set& set = sets[message["set"].number];
    uint64_t start = now();
    for (uint64_t replay = 0; replay < replays; replay++) loop(set.entry, set.words.data(), set.launches);
    wire::Writer().number("ns", now() - start).send(61);
}

int main(int, char** arguments) {
    fcntl(0, F_DUPFD_CLOEXEC, 60);
    fcntl(1, F_DUPFD_CLOEXEC, 61);
    sandbox::begin(atoi(arguments[2]) != 0);
    wire::Writer().number("ready", 1).send(61);
    wire::Message message;
    while (wire::receive(60, message)) {
        const std::string& op = message["op"].bytes;
        if (op == "open") open_arena(message);
        else if (op == "load") load(message);
        else if (op == "stage") stage(message);
        else if (op == "go") go(message, message["replays"].number);
        else go(message, 1);
    }
    return 0;
}
