"""A kernel that takes the mean and the top of a row anew for every column, in texts that are many times apart in speed.

Taking one of them once a row is about twice as fast, taking both once is many times as fast, so no noise of a machine
can hide which text is which.
"""

from math import log

from protocol.messages import Plan, Proposal, Resolution, Variant
from roles.minds.scripted import Play

TASK = """\
name = "row_energy"
source = "row_energy.cpp"

[arguments]
x = { shape = ["rows", "cols"] }
y = { shape = ["rows", "cols"] }

[tolerance]
default = { atol = 1e-3, rtol = 1e-3 }

[policy]
calibration_restarts = 4

[[workloads]]
name = "only"
dims = { rows = 16, cols = 160 }
"""
REFERENCE = """\
def reference(x, y, rows, cols):
    y.copy_((x - x.mean(-1, keepdim=True)) / (1.0 + x.abs().amax(-1, keepdim=True)))
"""
MEAN = "float mean = 0.0f;\n{0}for (int k = 0; k < cols; k++) mean += x[r * cols + k] / cols;\n"
TOP = "float top = 1.0f;\n{0}for (int k = 0; k < cols; k++) top = std::max(top, 1.0f + std::fabs(x[r * cols + k]));\n"
OUTER, INNER = " " * 8, " " * 12


def apart(mean_once: bool, top_once: bool) -> str:
    """Mean and top in two functions, ten lines apart."""
    return "\n".join((
        "#include <algorithm>\n#include <cmath>\n",
        "static void centre(const float* x, float* y, int rows, int cols) {",
        _loops(MEAN, mean_once, "y[r * cols + c] = x[r * cols + c] - mean;"),
        "}\n\n// the second half\n\n",
        "static void scale(const float* x, float* y, int rows, int cols) {",
        _loops(TOP, top_once, "y[r * cols + c] /= top;"),
        "}\n",
        'extern "C" void solve(const float* x, float* y, int rows, int cols) {',
        "    centre(x, y, rows, cols);\n    scale(x, y, rows, cols);\n}\n",
    ))  # fmt: skip


def _loops(what: str, once: bool, store: str) -> str:
    before = OUTER + what.format(OUTER) if once else ""
    inside = "" if once else INNER + what.format(INNER)
    column = f"{OUTER}for (int c = 0; c < cols; c++) {{\n{inside}{INNER}{store}\n{OUTER}}}"
    return f"    for (int r = 0; r < rows; r++) {{\n{before}{column}\n    }}"


def together(mean_once: bool, top_once: bool) -> str:
    """Mean and top on neighbouring lines of one loop."""
    takes = ((MEAN, mean_once), (TOP, top_once))
    before = "".join(OUTER + take.format(OUTER) for take, once in takes if once)
    inside = "".join(INNER + take.format(INNER) for take, once in takes if not once)
    return "\n".join((
        "#include <algorithm>\n#include <cmath>\n",
        'extern "C" void solve(const float* x, float* y, int rows, int cols) {',
        "    for (int r = 0; r < rows; r++) {",
        f"{before}{OUTER}for (int c = 0; c < cols; c++) {{",
        f"{inside}{INNER}y[r * cols + c] = (x[r * cols + c] - mean) / top;",
        f"{OUTER}}}\n    }}\n}}\n",
    ))  # fmt: skip


CATEGORIES = {"mean": "fusion", "top": "invariants", "both": "fusion"}  # each of its agent's direction


def play(technique: str, text: str, resolution: str = "") -> Play:
    words = dict.fromkeys(
        ("bottleneck", "evidence", "mechanism", "disproof", "fallback"), "recomputed for every column"
    )
    plan = Plan(
        technique=technique, category=CATEGORIES[technique], change=f"take the {technique} once a row",
        expected_gain=log(2.0), cell="balanced/early", **words,
    )  # fmt: skip
    both = {name: Resolution(files={"row_energy.cpp": resolution}, how="both once a row") for name in ("mean", "top")}
    proposal = Proposal(plan=plan, variants=(Variant(files={"row_energy.cpp": text}),))
    return Play(proposals=(proposal,), resolutions=both if resolution else {})
