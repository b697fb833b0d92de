// The CUDA runner: lends its address space and one CUDA context to one untrusted kernel, or to several of one author. It
// opens the judge's buffers over CUDA IPC, captures n launches over n slots into a graph, and replays it on request.
//
// usage: runner PARENT_PID KEEP_UID [DEVICE_NODE...]
//   -> {ready, began, made} | {error}                 once: a context exists, nothing foreign is loaded yet; when (ns)
//   {op: open, handle, size}                          -> {ok} | {error}      instead of what was open before
//   {op: load, shim, libraries, library_sizes, kernels, sizes}  -> {ok, layers} | {error}    seals the sandbox first
//       all as bytes, kernels one behind the other, and libraries that they were linked with; sizes: their lengths as
//       64-bit words
//   {op: stage, set, kernel, launches, columns, pointers, streams, words, regime}  -> {ok, regime, why, nodes, overlaps}
//       kernel: counted from 0, which it is by default
//   {op: go, set, replays}                            -> {ns} | {error}            events: a claim, not evidence
//   {op: walk, set}                                   -> {ns} | {error}            host clock: what launching costs
//
// Regimes: 0 graph; 1 gated (a spinning kernel holds the stream while launches queue up); 2 plain. A stage falls to the
// next one when it must and says why. Not trusted as a whole once `load` has run.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "order.h"
#include "sandbox.h"
#include "wire.h"

namespace {

using Loop = void (*)(void* entry, const uint64_t* row, uint64_t launches);

enum Regime : uint64_t { kGraph = 0, kGated = 1, kPlain = 2 };

struct Set {
    void* entry = nullptr;
    uint64_t launches = 0;
    uint64_t columns = 0;
    uint64_t regime = kPlain;
    uint64_t nodes = 0;
    uint64_t overlaps = 0;
    std::vector<uint64_t> words;
    cudaGraphExec_t graph = nullptr;
};

struct Runner {
    int requests = -1;
    int answers = -1;
    char* arena = nullptr;
    uint64_t arena_size = 0;
    Loop loop = nullptr;
    std::vector<void*> entries;
    cudaEvent_t start = nullptr;  // inside a graph: recorded anew by every replay
    cudaEvent_t stop = nullptr;
    cudaEvent_t first = nullptr;  // around launches from outside a graph, or around many replays
    cudaEvent_t last = nullptr;
    volatile unsigned* gate = nullptr;  // [0] opened by the host, [1] set when the gate gave up waiting
    std::map<uint64_t, Set> sets;
};

constexpr int kRequests = 60;
constexpr int kAnswers = 61;
constexpr uint64_t kFiles = 1024;
constexpr uint64_t kGateNs = 20'000'000;  // a gate that is not opened by then: the solve waits for the device
const cudaStream_t kStream = cudaStreamPerThread;

__global__ void hold(volatile unsigned* gate, uint64_t patience_ns) {
    uint64_t since, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(since));
    while (gate[0] == 0) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - since > patience_ns) {
            gate[1] = 1;
            return;
        }
    }
}

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

std::string told(cudaError_t error) {
    return std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error);
}

// Answer with the error, if it is one. A broken context stays broken: the judge replaces the process.
bool failed(Runner& runner, cudaError_t error) {
    if (error == cudaSuccess) return false;
    wire::Writer().word("error", told(error)).send(runner.answers);
    return true;
}

void move_protocol(Runner& runner) {
    runner.requests = fcntl(0, F_DUPFD_CLOEXEC, kRequests);
    runner.answers = fcntl(1, F_DUPFD_CLOEXEC, kAnswers);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    if (null > 2) close(null);
}

cudaError_t make_context(Runner& runner) {
    cudaError_t error = cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost);
    if (error == cudaSuccess) error = cudaFree(nullptr);
    for (cudaEvent_t* event : {&runner.start, &runner.stop, &runner.first, &runner.last}) {
        if (error == cudaSuccess) error = cudaEventCreate(event);
    }
    void* gate = nullptr;
    if (error == cudaSuccess) error = cudaHostAlloc(&gate, 2 * sizeof(unsigned), cudaHostAllocMapped);
    runner.gate = static_cast<volatile unsigned*>(gate);
    if (error != cudaSuccess) return error;
    runner.gate[0] = 1;
    hold<<<1, 1, 0, kStream>>>(runner.gate, kGateNs);  // loads the gate now rather than under a clock
    return cudaStreamSynchronize(kStream);
}

void open_arena(Runner& runner, wire::Message& message) {
    const std::string& bytes = message["handle"].bytes;
    cudaIpcMemHandle_t handle{};
    if (bytes.size() != sizeof handle) wire::broken();
    memcpy(&handle, bytes.data(), sizeof handle);
    if (runner.arena != nullptr && failed(runner, cudaIpcCloseMemHandle(runner.arena))) return;
    runner.arena = nullptr;
    void* at = nullptr;
    if (failed(runner, cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess))) return;
    runner.arena = static_cast<char*>(at);
    runner.arena_size = message["size"].number;
    wire::Writer().number("ok", 1).send(runner.answers);
}

int memory_file(const std::string& bytes) {
    int fd = memfd_create("kernelteam-artifact", MFD_CLOEXEC);
    if (fd < 0) wire::broken();
    wire::write_exactly(fd, bytes.data(), bytes.size());
    return fd;
}

void* opened(int fd, std::string& error) {
    std::string path = "/proc/self/fd/" + std::to_string(fd);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) error = dlerror();
    return library;
}

void* find(int fd, const char* symbol, std::string& error) {
    void* library = opened(fd, error);
    void* found = library == nullptr ? nullptr : dlsym(library, symbol);
    if (library != nullptr && found == nullptr) error = dlerror();
    return found;
}

std::vector<int> memory_files(const std::string& bytes, const std::string& sizes) {
    std::vector<int> files;
    uint64_t at = 0, size = 0;
    for (uint64_t i = 0; i + sizeof size <= sizes.size(); i += sizeof size) {
        memcpy(&size, sizes.data() + i, sizeof size);
        if (size > bytes.size() - at) wire::broken();
        files.push_back(memory_file(bytes.substr(at, size)));
        at += size;
    }
    return files;
}

void load(Runner& runner, wire::Message& message, const std::string& begun, const std::vector<std::string>& nodes) {
    int shim = memory_file(message["shim"].bytes);
    std::vector<int> libraries = memory_files(message["libraries"].bytes, message["library_sizes"].bytes);
    std::vector<int> kernels = memory_files(message["kernels"].bytes, message["sizes"].bytes);
    std::string layers = sandbox::seal(begun, RLIM_INFINITY, kFiles, nodes), error;
    runner.loop = reinterpret_cast<Loop>(find(shim, "kernelteam_loop", error));
    for (int library : libraries) {  // a kernel finds them by their names, wherever they were loaded from
        if (error.empty()) opened(library, error);
    }
    for (int kernel : kernels) {
        if (error.empty()) runner.entries.push_back(find(kernel, "solve", error));
    }
    if (error.empty()) {
        wire::Writer().number("ok", 1).word("layers", layers).send(runner.answers);
    } else {
        wire::Writer().word("error", error).send(runner.answers);
    }
}

// Launches of the set between two events inside one graph. On failure the stream is as before.
cudaError_t capture(Runner& runner, Set& set) {
    cudaError_t error = cudaStreamBeginCapture(kStream, cudaStreamCaptureModeGlobal);
    if (error != cudaSuccess) return error;
    cudaEventRecordWithFlags(runner.start, kStream, cudaEventRecordExternal);
    order::Watch watch;
    watch.look(kStream);
    for (uint64_t call = 0; call < set.launches; call++) {
        runner.loop(set.entry, set.words.data() + call * set.columns, 1);
        watch.look(kStream);
    }
    cudaEventRecordWithFlags(runner.stop, kStream, cudaEventRecordExternal);
    cudaGraph_t graph = nullptr;
    error = cudaStreamEndCapture(kStream, &graph);
    size_t nodes = 0;
    if (error == cudaSuccess) error = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (error == cudaSuccess) set.overlaps = watch.overlaps(graph);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&set.graph, graph, 0);
    if (error == cudaSuccess) error = cudaGraphUpload(set.graph, kStream);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    set.nodes = nodes >= 2 ? nodes - 2 : 0;
    return error;
}

// Queue all launches behind a closed gate, open it, wait. True when the gate had to give up.
bool gated(Runner& runner, Set& set) {
    runner.gate[0] = 0;
    runner.gate[1] = 0;
    hold<<<1, 1, 0, kStream>>>(runner.gate, kGateNs);
    cudaEventRecord(runner.first, kStream);
    runner.loop(set.entry, set.words.data(), set.launches);
    cudaEventRecord(runner.last, kStream);
    runner.gate[0] = 1;
    cudaStreamSynchronize(kStream);
    return runner.gate[1] != 0;
}

void read_words(Runner& runner, wire::Message& message, Set& set) {
    uint64_t pointers = message["pointers"].number;  // bit k: column k is an offset into the arena
    uint64_t streams = message["streams"].number;    // bit k: column k is the stream
    const std::string& words = message["words"].bytes;
    set.launches = message["launches"].number;
    set.columns = message["columns"].number;
    set.words.resize(words.size() / sizeof(uint64_t));
    memcpy(set.words.data(), words.data(), set.words.size() * sizeof(uint64_t));
    if (set.words.size() != set.launches * set.columns) wire::broken();
    for (size_t i = 0; i < set.words.size(); i++) {
        uint64_t column = i % set.columns;
        if (streams >> column & 1) set.words[i] = reinterpret_cast<uint64_t>(kStream);
        if ((pointers >> column & 1) == 0) continue;
        if (set.words[i] >= runner.arena_size) wire::broken();
        set.words[i] += reinterpret_cast<uint64_t>(runner.arena);
    }
}

void stage(Runner& runner, wire::Message& message) {
    Set& set = runner.sets[message["set"].number];
    if (set.graph != nullptr) cudaGraphExecDestroy(set.graph);
    set = Set();
    if (message["kernel"].number >= runner.entries.size()) wire::broken();
    set.entry = runner.entries[message["kernel"].number];
    read_words(runner, message, set);
    set.regime = message["regime"].number;
    std::string why;
    if (set.launches > 0) runner.loop(set.entry, set.words.data(), 1);  // what a first call sets up
    if (failed(runner, cudaDeviceSynchronize())) return;
    if (set.regime == kGraph) {
        cudaError_t error = capture(runner, set);
        if (error != cudaSuccess) {
            set.regime = kGated;
            why = "its launches cannot be captured (" + told(error) + ")";
        }
    }
    if (set.regime == kGated && set.launches > 0 && gated(runner, set)) {
        set.regime = kPlain;
        why += why.empty() ? "it waits for the device" : ", and it waits for the device";
    }
    if (failed(runner, cudaDeviceSynchronize())) return;
    wire::Writer().number("ok", 1).number("regime", set.regime).number("nodes", set.nodes)
        .number("overlaps", set.overlaps).word("why", why).send(runner.answers);
}

uint64_t between(cudaEvent_t start, cudaEvent_t stop, cudaError_t& error) {
    float milliseconds = 0.0f;
    error = cudaEventElapsedTime(&milliseconds, start, stop);
    return static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6 + 0.5);
}

void launch(Runner& runner, Set& set, uint64_t replays) {
    if (set.regime == kGated && replays == 1) {
        gated(runner, set);
        return;
    }
    cudaEventRecord(runner.first, kStream);
    for (uint64_t replay = 0; replay < replays; replay++) {
        if (set.regime == kGraph) cudaGraphLaunch(set.graph, kStream);
        else runner.loop(set.entry, set.words.data(), set.launches);
    }
    cudaEventRecord(runner.last, kStream);
}

void go(Runner& runner, wire::Message& message) {
    Set& set = runner.sets[message["set"].number];
    if (set.launches == 0) {
        if (failed(runner, cudaStreamSynchronize(kStream))) return;
        wire::Writer().number("ns", 0).send(runner.answers);
        return;
    }
    uint64_t replays = message["replays"].number;
    launch(runner, set, replays);
    if (failed(runner, cudaStreamSynchronize(kStream))) return;
    if (failed(runner, cudaDeviceSynchronize())) return;
    cudaError_t error = cudaSuccess;
    bool inside = set.regime == kGraph && replays == 1;  // a graph holds the events of its own replay, without gaps
    uint64_t ns = inside ? between(runner.start, runner.stop, error) : between(runner.first, runner.last, error);
    if (failed(runner, error)) return;
    wire::Writer().number("ns", ns).send(runner.answers);
}

void walk(Runner& runner, wire::Message& message) {
    Set& set = runner.sets[message["set"].number];
    runner.loop(set.entry, set.words.data(), 1);  // switches the context in
    if (failed(runner, cudaDeviceSynchronize())) return;
    uint64_t start = now();
    runner.loop(set.entry, set.words.data(), set.launches);
    cudaError_t error = cudaStreamSynchronize(kStream);
    uint64_t stop = now();
    if (failed(runner, error) || failed(runner, cudaDeviceSynchronize())) return;
    wire::Writer().number("ns", stop - start).send(runner.answers);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return 64;
    const uint64_t began = now();
    Runner runner;
    move_protocol(runner);
    std::vector<std::string> nodes(arguments + 3, arguments + count);
    std::string begun = sandbox::begin(atoi(arguments[2]) != 0);
    if (getppid() != atoi(arguments[1])) return 65;  // the judge died before PDEATHSIG was set
    cudaError_t error = make_context(runner);
    if (failed(runner, error)) return 66;
    wire::Writer().number("ready", 1).number("began", began).number("made", now()).send(runner.answers);
    wire::Message message;
    while (wire::receive(runner.requests, message)) {
        const std::string& op = message["op"].bytes;
        if (op == "go") go(runner, message);
        else if (op == "walk") walk(runner, message);
        else if (op == "stage") stage(runner, message);
        else if (op == "open") open_arena(runner, message);
        else if (op == "load") load(runner, message, begun, nodes);
        else wire::broken();
    }
    return 0;
}
