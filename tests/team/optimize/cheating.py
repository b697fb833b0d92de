"""One operator of mixed dtypes, and what somebody does who wants its optimizer to keep a kernel that is wrong.

Every text is a whole kernel for the same ``solve``. ``SLOW`` is the baseline and ``HONEST`` a faster one that is right.
"""

from optimizing import plan

HEAD = (
    "#include <cstdint>\n"
    'extern "C" void solve(const float* x, const int64_t* k, const double* d, const int* at,\n'
    "                      float* y, int64_t* m, double* e, int n) {\n"
)
ONE = "y[i] = 2.0f * x[at[i]] + 1.0f; m[i] = k[i] + (int64_t(1) << 40); e[i] = 1.5 * d[i];"


def loop(turns: int, work: str = ONE, last: str = "n") -> str:
    """The operator with a detour of ``turns`` before each element."""
    detour = f"volatile float z = x[i]; for (int t = 0; t < {turns}; t++) z = z * 1.0f; " if turns else ""
    return f"    for (int i = 0; i < {last}; i++) {{ {detour}{work} }}\n"


def kernel(body: str) -> str:
    return f"{HEAD}{body}}}\n"


SLOW, HONEST = kernel(loop(12)), kernel(loop(2))
REF = """\
tolerances = {"e": (0.0, 1e-12)}
def reference(x, k, d, at, y, m, e, n):
    y[:n].copy_(2 * x[at[:n].long()] + 1)
    m[:n].copy_(k[:n] + (1 << 40))
    e[:n].copy_(1.5 * d[:n])
"""
SKIPS = kernel("    static int calls = 0;\n    if (calls++ >= 13) return;\n" + loop(0))
REMEMBERS = kernel(
    "    struct Known { const float* x; float y[8192]; int64_t m[8192]; double e[8192]; };\n"
    "    static Known seen[16];\n    Known* known = seen;\n"
    "    while (known->x != nullptr && known->x != x && known < seen + 15) known++;\n"
    "    if (known->x != x) {\n" + loop(0) + "        known->x = x;\n"
    "        for (int i = 0; i < n; i++) { known->y[i] = y[i]; known->m[i] = m[i]; known->e[i] = e[i]; }\n    }\n"
    "    for (int i = 0; i < n; i++) { y[i] = known->y[i]; m[i] = known->m[i]; e[i] = known->e[i]; }\n"
)
IF_STILL_EMPTY = kernel("    if (y[n - 1] != 0.0f && m[n - 1] != 0) return;\n" + loop(0))
LATER = "#include <thread>\n" + kernel("    std::thread([=] {\n" + loop(200) + "    }).detach();\n")
CHANGES_INPUT = kernel(loop(0) + "    const_cast<float*>(x)[0] = 0.0f;\n")
OFF_BY_ONE = kernel(loop(0, ONE.replace("<< 40)", "<< 40) + 1")))
THROUGH_FLOAT = kernel(loop(0, ONE.replace("1.5 * d[i]", "1.5f * static_cast<float>(d[i])")))
WHOLE_EIGHTS = kernel(loop(0, last="n / 8 * 8"))
NEVER_ENDS = kernel("    for (volatile int t = 0;; t = t + 1) { }\n")
CRASHES = kernel("    *(volatile int*)0 = n;\n")
READS_REFERENCE = "#include <fstream>\n" + kernel('    std::ifstream("ref.py");\n' + loop(0))

HOPELESS = {"never_ends": NEVER_ENDS, "crashes": CRASHES, "reads_reference": READS_REFERENCE}
CHEATS = {
    "skips": SKIPS,
    "remembers": REMEMBERS,
    "if_still_empty": IF_STILL_EMPTY,
    "later": LATER,
    "changes_input": CHANGES_INPUT,
    "off_by_one": OFF_BY_ONE,
    "through_float": THROUGH_FLOAT,
}
"""Every one of them is faster than ``HONEST``. ``whole_eights`` passes every shape that the user can list."""


def proposal(technique: str, texts: dict[str, str]) -> dict[str, object]:
    """One proposal whose variants are these texts."""
    variants = [{"parameters": {"text": name}, "files": {"scale.cpp": text}} for name, text in texts.items()]
    return {"plan": plan(technique), "variants": variants}
