"""A small task and kernels of known relation, written to a folder."""

from pathlib import Path

TOML = """
name = "scaled"
source = "scaled.cpp"
editable = ["scaled.cpp", "extra.h"]
[arguments]
x = {{ shape = ["n"] }}
y = {{ shape = ["n"] }}
[[workloads]]
name = "small"
dims = {{ n = 1000 }}
[[workloads]]
name = "odd"
dims = {{ n = 3001 }}
[policy]
looks = {looks}
calibration_restarts = 4
"""
REFERENCE = "import torch\n\n\ndef reference(x, y):\n    y.copy_(torch.sin(x))\n"
HEAD = '#include <cmath>\n#include "extra.h"\nextern "C" void solve(const float* x, float* y, int n) {\n'
ONCE = "    for (int i = 0; i < n; i++) y[i] = std::sin(x[i]);\n"
TWICE = (
    "    for (int i = 0; i < n; i++) { volatile float z = std::sin(0.5f * x[i]); y[i] = std::sin(x[i]) + 0.0f * z; }\n"
)


def kernel(body: str) -> str:
    """A whole source file around the body of ``solve``."""
    return HEAD + body + "}\n"


def write_tree(folder: Path, body: str) -> Path:
    """The editable files of one tree."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scaled.cpp").write_text(kernel(body))
    (folder / "extra.h").write_text("#pragma once\n")
    return folder


def write_task(folder: Path, body: str = TWICE, looks: tuple[int, ...] = (8, 16)) -> Path:
    """A task folder whose kernel has ``body``."""
    write_tree(folder, body)
    (folder / "task.toml").write_text(TOML.format(looks=list(looks)))
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "notes.txt").write_text("a file that nobody may change\n")
    return folder
