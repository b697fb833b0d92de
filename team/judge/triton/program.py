"""From a plan to C++ with ``extern "C" void solve(...)``: the judge's own host code around the candidate's kernels.

Trusted: every line is written here, from checked numbers. Loaded by the native CUDA runner like any ``solve``, so a
Triton kernel is captured, replayed, poisoned and checked exactly as a CUDA kernel is, and no Python stands near the
clock. The few declarations of the CUDA driver are those of cuda.h, where they may not change.
"""

from collections.abc import Mapping, Sequence

from team.judge.build import Recipe
from team.judge.triton.plan import Copy, Fill, Launch, Place, Plan, WorkloadPlan
from team.tasks.signature import Signature
from team.tasks.spec import Workload

SOURCE = "solve.cpp"
FLAGS = ("-O1", "-std=c++17", "-fPIC", "-shared")
_LARGE_SHARED = 48 << 10  # bytes; beyond, a kernel must ask for it

_HEAD = """\
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace {

struct Attribute {  // CUlaunchAttribute
    int id;
    int pad;
    union {
        unsigned numbers[16];
        int number;
    } value;
};

struct Config {  // CUlaunchConfig
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    void* stream;
    Attribute* attributes;
    unsigned count;
};

static_assert(sizeof(Attribute) == 72 && sizeof(Config) == 56, "as in cuda.h");

enum { kCooperative = 2, kCluster = 4, kClusterPolicy = 5 };  // CU_LAUNCH_ATTRIBUTE_...
enum { kMaxShared = 8, kWideClusters = 14 };                  // CU_FUNC_ATTRIBUTE_...

[[noreturn]] void fail() { _exit(75); }

void need(int status) {
    if (status != 0) fail();
}

template <class F> F driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) fail();
    return reinterpret_cast<F>(found);
}

struct Driver {
    int (*load)(void**, const void*) = driver<int (*)(void**, const void*)>("cuModuleLoadData");
    int (*find)(void**, void*, const char*) = driver<int (*)(void**, void*, const char*)>("cuModuleGetFunction");
    int (*set)(void*, int, int) = driver<int (*)(void*, int, int)>("cuFuncSetAttribute");
    int (*launch)(const Config*, void*, void**, void**) =
        driver<int (*)(const Config*, void*, void**, void**)>("cuLaunchKernelEx");
    int (*allocate)(uint64_t*, size_t) = driver<int (*)(uint64_t*, size_t)>("cuMemAlloc_v2");
    int (*copy)(uint64_t, uint64_t, size_t, void*) =
        driver<int (*)(uint64_t, uint64_t, size_t, void*)>("cuMemcpyDtoDAsync_v2");
    int (*fill1)(uint64_t, unsigned char, size_t, void*) =
        driver<int (*)(uint64_t, unsigned char, size_t, void*)>("cuMemsetD8Async");
    int (*fill2)(uint64_t, unsigned short, size_t, void*) =
        driver<int (*)(uint64_t, unsigned short, size_t, void*)>("cuMemsetD16Async");
    int (*fill4)(uint64_t, unsigned, size_t, void*) =
        driver<int (*)(uint64_t, unsigned, size_t, void*)>("cuMemsetD32Async");
};

const Driver& cuda() {
    static const Driver known;
    return known;
}

void* loaded(const void* image, const char* name, unsigned shared, unsigned large, int wide) {
    void *module = nullptr, *function = nullptr;
    need(cuda().load(&module, image));
    need(cuda().find(&function, module, name));
    if (shared > large) need(cuda().set(function, kMaxShared, static_cast<int>(shared)));
    if (wide) need(cuda().set(function, kWideClusters, 1));
    return function;
}

uint64_t reserved(size_t size) {
    uint64_t address = 0;
    need(cuda().allocate(&address, size));
    return address;
}

void launch(void* function, unsigned x, unsigned y, unsigned z, unsigned warps, unsigned ctas, int cooperative,
            unsigned shared, void** arguments, void* stream) {
    Attribute attributes[3] = {};
    unsigned count = 0;
    if (cooperative) {
        attributes[count].id = kCooperative;
        attributes[count++].value.number = 1;
    }
    if (ctas > 1) {
        attributes[count].id = kCluster;
        attributes[count].value.numbers[0] = ctas;
        attributes[count].value.numbers[1] = attributes[count].value.numbers[2] = 1;
        attributes[++count].id = kClusterPolicy;
        attributes[count++].value.number = 1;
    }
    Config config{{x * ctas, y, z}, {32 * warps, 1, 1}, shared, stream, attributes, count};
    need(cuda().launch(&config, function, arguments, nullptr));
}
"""


def program_recipe(plan: Plan, signature: Signature, workloads: Sequence[Workload]) -> Recipe:
    """How to build ``plan``; ``signature`` is that of the task, its dims and scalars choose the workload."""
    wide = {step.kernel for one in plan.workloads for step in one.steps if isinstance(step, Launch) and step.ctas > 8}
    text = [_HEAD, *(_image(number, kernel.image) for number, kernel in enumerate(plan.kernels))]
    for number, kernel in enumerate(plan.kernels):
        call = f'loaded(image{number}, "{kernel.name}", {kernel.shared}u, {_LARGE_SHARED}u, {int(number in wide)})'
        text.append(f"void* kernel{number}() {{\n    static void* found = {call};\n    return found;\n}}\n")
    text += [_workload(plan, number, one) for number, one in enumerate(plan.workloads)]
    text += ["}  // namespace\n", _solve(signature, workloads)]
    return Recipe({SOURCE: "\n".join(text)}, SOURCE, FLAGS)


def _image(number: int, image: bytes) -> str:
    padded = image.ljust(-(-len(image) // 8) * 8, b"\0")
    words = [f"0x{int.from_bytes(padded[at : at + 8], 'little'):x}u" for at in range(0, len(padded), 8)]
    lines = [", ".join(words[at : at + 8]) for at in range(0, len(words), 8)]
    return f"alignas(64) const uint64_t image{number}[] = {{\n" + ",\n".join(lines) + "};\n"


def _workload(plan: Plan, number: int, one: WorkloadPlan) -> str:
    lines = [f"void workload{number}(uint64_t const* buffer, void* stream) {{"]
    if one.scratch:
        pieces = ", ".join(f"reserved({size}u)" for size in one.scratch)
        lines.append(f"    static const uint64_t scratch[] = {{{pieces}}};")
    for step in one.steps:
        lines += [f"    {line}" for line in _step(plan, step)]
    return "\n".join([*lines, "}\n"])


def _step(plan: Plan, step: Launch | Fill | Copy) -> list[str]:
    if isinstance(step, Copy):
        return [f"need(cuda().copy({_at(step.target)}, {_at(step.source)}, {step.size}u, stream));"]
    if isinstance(step, Fill):
        width, word = len(step.word), int.from_bytes(step.word, "little")
        return [f"need(cuda().fill{width}({_at(step.target)}, {word}u, {step.size // width}u, stream));"]
    return _launch(plan, step)


def _launch(plan: Plan, step: Launch) -> list[str]:
    values = [
        _at(one.place) if one.place is not None else f"0x{int.from_bytes(one.word or b'', 'little'):x}u"
        for one in step.arguments
    ]
    pointers = ", ".join(f"&value[{at}]" for at in range(len(values)))
    x, y, z = step.grid
    shape = f"{x}u, {y}u, {z}u, {step.warps}u, {step.ctas}u, {int(step.cooperative)}"
    shared = plan.kernels[step.kernel].shared
    return [
        "{",
        f"    uint64_t value[] = {{{', '.join(values)}}};",
        f"    void* arguments[] = {{{pointers}}};",
        f"    launch(kernel{step.kernel}(), {shape}, {shared}u, arguments, stream);",
        "}",
    ]


def _at(place: Place) -> str:
    kind, number, offset = place
    return f"{kind}[{number}] + {offset}u"


def _solve(signature: Signature, workloads: Sequence[Workload]) -> str:
    """The entry point: finds the workload by the values of dims and scalars."""
    pointers = [f"b{number}" for number, _ in enumerate(signature.pointers)]
    numbers = [parameter for parameter in signature.parameters if not parameter.pointer]
    types = {"float64": "double", "int64": "int64_t"}
    formal = [f"void* {name}" for name in pointers]
    formal += [f"{types[parameter.dtype]} n{number}" for number, parameter in enumerate(numbers)]
    addresses = ", ".join(f"reinterpret_cast<uint64_t>({name})" for name in pointers)
    lines = [f'extern "C" void solve({", ".join([*formal, "void* stream"])}) {{']
    lines.append(f"    const uint64_t buffer[] = {{{addresses}}};")
    for number, workload in enumerate(workloads):
        values: Mapping[str, float] = {**workload.dims, **workload.scalars}
        tests = [
            f"n{at} == {_literal(values[parameter.name], parameter.dtype)}" for at, parameter in enumerate(numbers)
        ]
        lines.append(f"    if ({' && '.join(tests) or 'true'}) return workload{number}(buffer, stream);")
    return "\n".join([*lines, "    fail();", "}\n"])


def _literal(value: float, dtype: str) -> str:
    return f"{int(value)}ll" if dtype == "int64" else float(value).hex()
