// The CPU runner: lends its address space to one untrusted kernel, or to several of one author. It maps the arena that
// the judge owns, loads the judge's loop and the shared objects from sealed descriptors, and launches on request.
//
// usage: runner ARENA_FD SHIM_FD [LIBRARY_FD...] KERNEL_FD[,KERNEL_FD...] PARENT_PID CORE[,CORE...]
//   libraries: in one argument, separated by commas; trusted ones, which the kernels were linked with
//   {op: load}                                   -> {ok, layers} | {error}
//   {op: stage, set, kernel, launches, columns, pointers, words}  -> {ok}
//       kernel: counted from 0, which it is by default; words: launches x columns, arena offsets or bits
//   {op: go, set}                                -> {ns}              this process's own clock: a claim, not evidence
//
// Not trusted as a whole once `load` has run: the kernel shares this address space and may forge any answer.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <map>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

#include "sandbox.h"
#include "wire.h"

namespace {

using Loop = void (*)(void* entry, const uint64_t* row, uint64_t launches);

struct Set {
    void* entry = nullptr;
    uint64_t launches = 0;
    std::vector<uint64_t> words;
};

struct Runner {
    int requests = -1;
    int answers = -1;
    char* arena = nullptr;
    uint64_t arena_size = 0;
    std::string layers;
    Loop loop = nullptr;
    std::vector<void*> entries;
    std::map<uint64_t, Set> sets;
};

constexpr int kRequests = 60;
constexpr int kAnswers = 61;
constexpr uint64_t kAddressSpace = 16ull << 30;  // beyond the arena: stacks of threads, packed copies, libraries

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// Move the protocol away from descriptors 0 and 1, which the kernel may print to as it likes.
void move_protocol(Runner& runner) {
    runner.requests = fcntl(0, F_DUPFD_CLOEXEC, kRequests);
    runner.answers = fcntl(1, F_DUPFD_CLOEXEC, kAnswers);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    if (null > 2) close(null);
}

void map_arena(Runner& runner, int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) wire::broken();
    runner.arena_size = static_cast<uint64_t>(status.st_size);
    void* at = mmap(nullptr, runner.arena_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) wire::broken();
    runner.arena = static_cast<char*>(at);
    close(fd);
}

std::vector<int> numbers(const char* listed) {
    std::vector<int> found;
    for (const char* at = listed; *at != '\0';) {
        char* end = nullptr;
        found.push_back(static_cast<int>(strtol(at, &end, 10)));
        at = *end == ',' ? end + 1 : end;
    }
    return found;
}

void keep_to_cores(const char* listed) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int core : numbers(listed)) CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

void* opened(int fd, std::string& error) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) error = dlerror();
    close(fd);
    return library;
}

void* find(int fd, const char* symbol, std::string& error) {
    void* library = opened(fd, error);
    void* found = library == nullptr ? nullptr : dlsym(library, symbol);
    if (library != nullptr && found == nullptr) error = dlerror();
    return found;
}

// A kernel finds a library that it was linked with by its name, wherever that was loaded from.
void load(Runner& runner, int shim, const char* libraries, const char* kernels) {
    std::string error;
    for (int library : numbers(libraries)) {
        if (error.empty()) opened(library, error);
    }
    runner.loop = reinterpret_cast<Loop>(find(shim, "kernelteam_loop", error));
    for (int kernel : numbers(kernels)) {
        if (error.empty()) runner.entries.push_back(find(kernel, "solve", error));
    }
    if (error.empty()) {
        wire::Writer().number("ok", 1).word("layers", runner.layers).send(runner.answers);
    } else {
        wire::Writer().word("error", error).send(runner.answers);
    }
}

void stage(Runner& runner, wire::Message& message) {
    uint64_t columns = message["columns"].number;
    uint64_t pointers = message["pointers"].number;  // bit k: column k is an offset into the arena
    const std::string& words = message["words"].bytes;
    Set& set = runner.sets[message["set"].number];
    if (message["kernel"].number >= runner.entries.size()) wire::broken();
    set.entry = runner.entries[message["kernel"].number];
    set.launches = message["launches"].number;
    set.words.resize(words.size() / sizeof(uint64_t));
    memcpy(set.words.data(), words.data(), set.words.size() * sizeof(uint64_t));
    if (set.words.size() != set.launches * columns) wire::broken();
    for (size_t i = 0; i < set.words.size(); i++) {
        if ((pointers >> (i % columns) & 1) == 0) continue;
        if (set.words[i] >= runner.arena_size) wire::broken();
        set.words[i] += reinterpret_cast<uint64_t>(runner.arena);
    }
    wire::Writer().number("ok", 1).send(runner.answers);
}

void go(Runner& runner, wire::Message& message) {
    Set& set = runner.sets[message["set"].number];
    uint64_t start = now();
    runner.loop(set.entry, set.words.data(), set.launches);
    uint64_t stop = now();
    wire::Writer().number("ns", stop - start).send(runner.answers);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 7) return 64;
    Runner runner;
    move_protocol(runner);
    map_arena(runner, atoi(arguments[1]));
    keep_to_cores(arguments[6]);
    runner.layers = sandbox::enter(runner.arena_size + kAddressSpace);
    if (getppid() != atoi(arguments[5])) return 65;  // the judge died before PDEATHSIG was set
    wire::Message message;
    while (wire::receive(runner.requests, message)) {
        const std::string& op = message["op"].bytes;
        if (op == "go") go(runner, message);
        else if (op == "stage") stage(runner, message);
        else if (op == "load") load(runner, atoi(arguments[2]), arguments[3], arguments[4]);
        else wire::broken();
    }
    return 0;
}
