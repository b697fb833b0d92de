"""The screen of C++ and CUDA: honest kernels pass, whoever wrote them; each trick is named with its line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from roles.techniques.catalog import all_cards
from team.judge.build import Builder, Recipe, kernel_flags
from team.judge.failures import Forbidden
from team.judge.screen.native import Licence, own_constructs, screen_expanded, screen_text
from team.judge.screen.tokens import pieces, read
from team.judge.screening import screening_of
from team.tasks.spec import read_spec

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "tests" / "gallery"
SOLVE = 'extern "C" void solve(const float* x, float* y, int n) {{\n{}\n}}\n'
BARE = Licence()


def refused(text: str, licence: Licence = BARE) -> str:
    return "; ".join(map(str, screen_text({"k.cpp": text}, ["k.cpp"], licence)))


def expanded(text: str, tmp_path: Path) -> str:
    (tmp_path / "k.cpp").write_text(text)
    done = subprocess.run(["g++", "-E", "k.cpp"], cwd=tmp_path, capture_output=True, text=True, check=True)
    return "; ".join(map(str, screen_expanded(done.stdout, ["k.cpp"], BARE)))


EXAMPLES = sorted([*ROOT.glob("examples/*/*.cpp"), *ROOT.glob("examples/*/*.cu")])
CATALOG = [(card, path) for card in all_cards() if card.transform is not None for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_pass(path: Path) -> None:
    assert refused(path.read_text()) == ""


@pytest.mark.parametrize("path", sorted(GALLERY.glob("**/honest/*.c*")), ids=lambda path: path.stem)
def test_honest_exhibits_pass(path: Path) -> None:
    body = GALLERY / ("honest_body.h" if path.suffix == ".cpp" else "cuda/honest_body.cuh")
    assert refused(body.read_text() + path.read_text()) == ""


def test_what_the_catalog_writes_passes() -> None:
    """Every transform, applied wherever it applies to the examples, one after the other."""
    written = 0
    for card, path in CATALOG:
        assert card.transform is not None
        transform, text = card.transform(), path.read_text()
        for _ in range(3):
            sites = transform.applies(text)
            if not sites:
                break
            last = {name: values[-1] for name, values in transform.space(sites[0]).items()}
            text = transform.apply(text, sites[0], last)
            written += 1
            assert refused(text) == "", f"{card.name} on {path.name}\n{text}"
    assert written > 40


HONEST = {
    "simd and prefetch": """
        #include <immintrin.h>
        __attribute__((target("avx2"), noinline)) static void f(const char* p) {
            _mm_pause();
            asm volatile("prefetcht0 %0" : : "m"(*p));
        }""",
    "vectors": """
        typedef float V __attribute__((vector_size(32), aligned(4)));
        alignas(64) static float pad[16];""",
    "standard attributes": """
        [[nodiscard]] [[gnu::always_inline]] inline int f(int a[3]) { return a[[] { return 0; }()]; }""",
    "pragmas": """
        #pragma once
        #pragma omp parallel for
        #pragma GCC unroll 8
        #pragma GCC ivdep
        _Pragma("omp simd")""",
    "options that keep results": """
        #pragma GCC optimize("O3", "unroll-loops")
        __attribute__((optimize("O3"))) void f();""",
    "own names": """
        static float read(const float* p) { return *p; }
        void f(int time, float* link) { float wait = read(link); int select; }
        struct S { int write; int close; void open() {} };
        void g(S s) { s.open(); s.write = 1; cg::sync(s); }""",
    "a check of errors": r"""
        #include <cstdio>
        #include <cstdlib>
        #define CHECK(x) do { if (x) { fprintf(stderr, "%s\n", #x); exit(1); } } while (0)""",
    "words in comments and strings": """
        // fork(); system("x")
        /* dlopen */ const char* t = "getenv('PATH') fork";""",
    "ptx": """
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.cg.shared.global [%1], [%2], 16; }" :: "r"(1));
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1};" : "+f"(d) : "r"(a));
        asm("trap;");""",
    "tensor maps": """
        #include <cuda.h>
        #include <cudaTypedefs.h>
        void f(void** p) { cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", p, 0, nullptr); }
        PFN_cuTensorMapEncodeTiled_v12000 g;""",
    "cuda headers": """
        #include <cuda_fp16.h>
        #include <cooperative_groups/reduce.h>
        #include <cub/block/block_reduce.cuh>
        #include <cuda/pipeline>
        #include <mma.h>
        #include <cuda/std/utility>
        #include <cute/tensor.hpp>""",
    "threads": """
        #include <thread>
        #include <atomic>
        void f() { std::thread t([] {}); t.join(); std::this_thread::yield(); }""",
}
TRICKS = {
    "#include <unistd.h>": "includes <unistd.h>",
    "#include <fstream>": "includes <fstream>",
    "#include <sys/mman.h>": "includes <sys/mman.h>",
    "#include </etc/passwd>": "outside its folder, /etc/passwd",
    '#include "../task/secret.h"': "outside its folder, ../task/secret.h",
    "#define H <cmath>\n#include H": "by way of #include H",
    "#include_next <cmath>": "by way of #include_next",
    "#inc\\\nlude <unistd.h>": "includes <unistd.h>",
    "%: include <unistd.h>": "includes <unistd.h>",
    "/* */ # /* */ include <unistd.h>": "includes <unistd.h>",
    "#if __has_include(<secret.h>)\n#endif": "__has_include",
    '#line 1 "kernelteam_capture.h"': "renumbers its lines",
    '# 1 "kernelteam_capture.h"': "renumbers its lines",
    'const char* s = R"(\n# 1 "other.h"\n)";': "hides a line marker",
    "int f() { return fork(); }": "names fork",
    'extern "C" int fork();\nint (*f)() = fork;': "names fork",
    'int f() { return ::system("true"); }': "names system",
    'int f() { return std::system("true"); }': "names system",
    'extern "C" long write(int, const void*, unsigned long);\nlong f() { return write(61, "", 1); }': "names write",
    'void* f() { return dlsym(nullptr, "x"); }': "names dlsym",
    'char* f() { return std::getenv("PATH"); }': "names getenv",
    "extern char** environ;": "names environ",
    'void* f() { return fopen("/proc/self/mem", "r"); }': "names fopen",
    "void f() { std::ofstream o; }": "names ofstream",
    "long f() { return syscall(SYS_write); }": "names syscall",
    "void f() { _exit(0); }": "names _exit",
    "auto t = std::chrono::steady_clock::now();": "names chrono",
    "long f() { return __rdtsc(); }": "names __rdtsc",
    "void* f() { return __builtin_return_address(0); }": "names __builtin_return_address",
    "__attribute__((constructor)) void f() {}": "the attribute constructor",
    "void f() __attribute__((__destructor__));": "the attribute destructor",
    "[[gnu::constructor]] void f() {}": "the attribute constructor",
    '[[using gnu: ifunc("g")]] void f();': "the attribute ifunc",
    'void f() __attribute__((alias("g")));': "the attribute alias",
    "void f() __attribute__((weak));": "the attribute weak",
    'const char c[] __attribute__((section(".text"))) = {1};': "the attribute section",
    '__attribute__((optimize("Ofast"))) void f() {}': "options to Ofast",
    '#pragma GCC optimize("fast-math")': "options to fast-math",
    "#pragma GCC poison x": "#pragma GCC poison",
    "#pragma weak solve": "#pragma weak solve",
    '_Pragma("GCC optimize(\\"-ffast-math\\")")': "options to -ffast-math",
    'asm(".incbin \\"/etc/passwd\\"");': "puts .incbin into",
    'asm(".global hidden\\nhidden:");': "puts .global into",
    'void f() { asm volatile("syscall"); }': "puts syscall into",
    'void f() { asm volatile("sys" "enter"); }': "puts sysenter into",
    'void f() { asm volatile(".byte 0x0f, 0x05"); }': "puts .byte into",
    'void f() { asm volatile("rdtsc" : "=a"(t)); }': "puts rdtsc into",
    'int f(const char*) asm("system");': "gives a symbol the name system",
    "#define PART fo\nint f() { return \\u0066ork(); }": "spells a name with an escape",
    "void f() { cudaLaunchHostFunc(0, g, 0); }": "names cudaLaunchHostFunc",
    "void f() { cuMemAlloc(&p, 1); }": "names cuMemAlloc of the driver",
    'void f() { cudaGetDriverEntryPoint("cuEventElapsedTime", p, 0, 0); }': "asks cudaGetDriverEntryPoint",
    "void f(const char* s) { cudaGetDriverEntryPoint(s, p, 0, 0); }": "asks cudaGetDriverEntryPoint",
    "void f() { cudaStreamIsCapturing(s, &status); }": "names cudaStreamIsCapturing",
}
PASTED_CALL = """#include <cstdlib>
#define J(a, b) a##b
int f() { return std::J(get, env)("A") != nullptr; }
"""
PASTED = {
    "#define JOIN(a, b) a##b\nint f() { return JOIN(fo, rk)(); }\nint fork();": "k.cpp:2 names fork",
    "#define LEAVE _exit\n#define A(x) x\nvoid _exit(int);\nvoid f() { A(LEAVE)(0); }": "k.cpp:4 names _exit",
    '#define P(x) _Pragma(#x)\nP(GCC optimize("Ofast"))\nvoid f() {}': "k.cpp:2 changes the compiler's options",
    "#define A(x, y) x##y\n#define B(x) x\nB(A(__attri, bute__)((A(constr, uctor)))) void f() {}": "constructor",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_habits_pass(name: str) -> None:
    assert refused(HONEST[name]) == ""


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_named(trick: str) -> None:
    said = refused(trick)
    assert TRICKS[trick] in said
    assert said.startswith(("k.cpp:1 ", "k.cpp:2 "))


@pytest.mark.parametrize("trick", PASTED)
def test_a_name_that_is_pasted_together_is_named(trick: str, tmp_path: Path) -> None:
    assert PASTED[trick] in expanded(trick, tmp_path)


def test_names_of_headers_are_not_the_candidates(tmp_path: Path) -> None:
    text = "#include <cstdlib>\n#include <thread>\n#include <cassert>\n" + SOLVE.format("assert(n > 0); y[0] = x[0];")
    assert expanded(text, tmp_path) == ""
    assert refused(text) == ""


def test_what_the_task_itself_does_is_permitted() -> None:
    original = "#include <unistd.h>\nvoid f() { usleep(1); }\n"
    own = own_constructs({"k.cpp": original}, ["k.cpp", "new.h"], BARE)
    assert refused(original, Licence(own=own)) == ""
    assert "names fork" in refused(original + "int g() { return fork(); }", Licence(own=own))
    assert Licence(own=own).identity != BARE.identity


def test_a_task_may_permit_more() -> None:
    assert refused("#include <cblas.h>") != ""
    assert refused("#include <cblas.h>", Licence(frozenset({"cblas.h"}))) == ""
    assert refused("#include <cublas_v2.h>\nvoid f() { cublasCreate(&h); }") != ""
    assert refused("#include <cublas_v2.h>\nvoid f() { cublasCreate(&h); }", Licence(libraries=True)) == ""
    assert refused('#pragma GCC optimize("fast-math")', Licence(approximate=True)) == ""


def test_lines_are_those_of_the_file() -> None:
    text = "int a; \\\n int b;\n/* two\nlines */ int c;\n#define M(x) \\\n  getenv(x)\n"
    assert [(token.text, token.line) for token in read(text).code if token.kind == "word"] == [
        *(("int", 1), ("a", 1), ("int", 2), ("b", 2), ("int", 4), ("c", 4), ("x", 5), ("getenv", 6), ("x", 6)),
    ]
    assert [(name, line) for name, line, _ in pieces('# 1 "a.cpp"\nx\n# 7 "b.h" 1 3\ny\n# 2 "a.cpp" 2\nz\n')] == [
        ("a.cpp", 1),
        ("b.h", 7),
        ("a.cpp", 2),
    ]


def test_hostile_text_ends_in_findings_or_none() -> None:
    for text in (
        '"',
        "'",
        "/*",
        'R"(',
        "__attribute__((",
        "asm(",
        "_Pragma(",
        "[[",
        "#",
        "#include",
        "#pragma",
        "\\",
        "\0",
    ):
        refused(text * 3)
        refused(f"int a;\n{text}")


def test_a_build_looks_at_what_was_preprocessed(tmp_path: Path) -> None:
    (tmp_path / "task").mkdir()
    shutil.copy(ROOT / "examples" / "softmax_cpu" / "task.toml", tmp_path / "task")
    screening = screening_of(read_spec(tmp_path / "task"), {})
    assert screening is not None
    text = "#define JOIN(a, b) a##b\n#include <cstdlib>\n" + SOLVE.format('y[0] = JOIN(get, env)("A") != nullptr;')
    files = {"softmax.cpp": text}
    screening.text(files)
    builder = Builder(tmp_path / "cache", tmp_path / "work")
    recipe = Recipe(files, "softmax.cpp", kernel_flags("reference", None), inspection=screening.identity)
    for _ in range(2):  # a refused build leaves nothing in the cache
        with pytest.raises(Forbidden, match=r"softmax\.cpp:4 names getenv"):
            builder.build(recipe, screening.expanded)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_builds_are_looked_at_as_well(tmp_path: Path) -> None:
    from team.judge.cuda.build import kernel_recipe

    screening = screening_of(read_spec(ROOT / "examples" / "softmax_cuda"), {})
    assert screening is not None
    honest = (ROOT / "examples" / "softmax_cuda" / "softmax.cu").read_text()
    builder = Builder(tmp_path / "cache", tmp_path / "work", "nvcc")
    for text, wrong in (
        (honest, False),
        (honest + PASTED_CALL, True),
    ):
        recipe = kernel_recipe({"softmax.cu": text}, "softmax.cu", "90a", "reference", None, 120.0)
        recipe = Recipe(recipe.files, recipe.main, recipe.flags, 120.0, inspection=screening.identity)
        if wrong:
            with pytest.raises(Forbidden, match="names getenv"):
                builder.build(recipe, screening.expanded)
        else:
            assert builder.build(recipe, screening.expanded).path.exists()
