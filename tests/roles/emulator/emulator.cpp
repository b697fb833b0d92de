// The emulator's part that no kernel changes, built once: every thread of a block is a fibre, blocks run one by one.
// Barriers and shuffles wait as the hardware does; a barrier that some threads never reach ends the process.
#include <ucontext.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "cuda_pipeline.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
size_t current;

namespace {
constexpr size_t THREADS = 1024, STACK = 1 << 17;

struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    State state = READY;
    dim3 place;
    double slots[2];
    int turn = 0;
};
std::vector<Fibre> fibres;
size_t alive;
ucontext_t scheduler;
void (*work)(void*);
void* given;

[[noreturn]] void fail(const char* why) {
    std::fprintf(stderr, "emulator: %s\n", why);
    std::abort();
}
void enter() {
    work(given);
    fibres[current].state = DONE;
    swapcontext(&fibres[current].context, &scheduler);
}
bool all_wait(size_t first, size_t last, State state) {
    bool any = false;
    for (size_t i = first; i < last; i++) {
        if (fibres[i].state != state && fibres[i].state != DONE) return false;
        any = any || fibres[i].state == state;
    }
    return any;
}
bool release(size_t first, size_t last, State state) {
    if (!all_wait(first, last, state)) return false;
    for (size_t i = first; i < last; i++) {
        if (fibres[i].state == state) fibres[i].state = READY;
    }
    return true;
}
void run_block() {
    for (;;) {
        bool moved = false, any = false;
        for (current = 0; current < alive; current++) {
            if (fibres[current].state != READY) continue;
            threadIdx = fibres[current].place;
            swapcontext(&scheduler, &fibres[current].context);
            moved = true;
        }
        for (size_t warp = 0; warp < alive; warp += 32) {
            moved |= release(warp, warp + 32 < alive ? warp + 32 : alive, AT_SHUFFLE);
        }
        moved |= release(0, alive, AT_BARRIER);
        for (size_t i = 0; i < alive; i++) any |= fibres[i].state != DONE;
        if (!any) return;
        if (!moved) fail("threads wait for each other");
    }
}
}  // namespace

void wait(State state) {
    Fibre& self = fibres[current];
    self.state = state;
    swapcontext(&self.context, &scheduler);
}
void run(dim3 grid, dim3 block, void (*kernel)(void*), void* arguments) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;  // an error on a device; nothing runs
    alive = size_t(block.x) * block.y;
    if (alive == 0 || alive > THREADS) fail("invalid configuration");
    work = kernel;
    given = arguments;
    gridDim = grid;
    blockDim = block;
    if (fibres.size() < alive) fibres.resize(alive);
    for (unsigned number = 0; number < grid.x * grid.y * grid.z; number++) {
        blockIdx = dim3(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
        for (size_t i = 0; i < alive; i++) {
            Fibre& each = fibres[i];
            each.state = READY;
            each.turn = 0;
            each.place = dim3(i % block.x, i / block.x);
            getcontext(&each.context);
            each.context.uc_stack.ss_sp = each.stack.get();
            each.context.uc_stack.ss_size = STACK;
            each.context.uc_link = &scheduler;
            makecontext(&each.context, enter, 0);
        }
        run_block();
    }
}
void shuffle(void* value, size_t size, size_t partner) {
    Fibre& self = fibres[current];
    const int turn = self.turn;
    self.turn = 1 - turn;
    std::memcpy(&self.slots[turn], value, size);
    wait(AT_SHUFFLE);
    if (partner < alive) std::memcpy(value, &fibres[partner].slots[turn], size);
}

// The matrix instruction: lanes show each other what they hold, and each computes its own sums.
namespace {
struct Held {
    unsigned a[4], b[2];
} held[THREADS];

// What a tensor core reads of a TF32 operand: it ignores the last thirteen bits.
double tf32(unsigned bits) { return __uint_as_float(bits & 0xffffe000u); }

// It adds exact products and cuts off, toward zero, what does not fit beside the largest of them.
float truncated(double value) {
    float nearest = static_cast<float>(value);
    return std::fabs(nearest) > std::fabs(value) ? std::nextafter(nearest, 0.0f) : nearest;
}
}  // namespace

// Adds what ``term`` says of number ``k`` for row registers ``a`` and column registers ``b``.
template <typename Term>
void mma(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2], int depth, Term term) {
    const size_t self = current, warp = self / 32 * 32, quad = self % 32 / 4, place = self % 4;
    std::memcpy(held[self].a, a, sizeof a);
    std::memcpy(held[self].b, b, sizeof b);
    wait(AT_SHUFFLE);
    for (size_t i = 0; i < 4; i++) {
        double total = sum[i];
        for (int k = 0; k < depth; k++) total += term(held + warp + quad * 4, i / 2, held + warp + (place * 2 + i % 2) * 4, k);
        sum[i] = truncated(total);
    }
    wait(AT_SHUFFLE);  // before a lane shows something else
}

void mma_16x8x8(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma(sum, a, b, 8, [](const Held* rows, size_t lower, const Held* cols, int k) {
        return tf32(rows[k % 4].a[lower + k / 4 * 2]) * tf32(cols[k % 4].b[k / 4]);
    });
}

void mma_16x8x16(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma(sum, a, b, 16, [](const Held* rows, size_t lower, const Held* cols, int k) {
        const int lane = k % 8 / 2, half = k % 2 ? 0 : 16;
        const unsigned row = rows[lane].a[lower + k / 8 * 2] << half, col = cols[lane].b[k / 8] << half;
        return double{__uint_as_float(row & 0xffff0000u)} * __uint_as_float(col & 0xffff0000u);
    });
}

// Asynchronous copies: each thread's own, in the order of their groups.
namespace {
struct Copy {
    void* to;
    const void* from;
    size_t size, zeros, group;
};
std::vector<Copy> copies[THREADS];
size_t groups[THREADS];
}  // namespace
}  // namespace emulator

void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros) {
    if ((size != 4 && size != 8 && size != 16) || reinterpret_cast<size_t>(to) % size ||
        (zeros < size && reinterpret_cast<size_t>(from) % size)) {
        emulator::fail("an asynchronous copy that is not aligned to its size");
    }
    const size_t self = emulator::current;
    emulator::copies[self].push_back({to, from, size, zeros, emulator::groups[self]});
}
void __pipeline_commit() { emulator::groups[emulator::current]++; }
void __pipeline_wait_prior(size_t left) {
    const size_t self = emulator::current;
    std::vector<emulator::Copy> later;
    for (const auto& each : emulator::copies[self]) {
        if (each.group + left >= emulator::groups[self]) {
            later.push_back(each);
            continue;
        }
        std::memcpy(each.to, each.from, each.size - each.zeros);
        std::memset(static_cast<char*>(each.to) + each.size - each.zeros, 0, each.zeros);
    }
    emulator::copies[self] = later;
}
