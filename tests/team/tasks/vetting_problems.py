"""Tiny tasks, each of which a kernel that does not do its work would pass; and one that is sound."""

from pathlib import Path

FLOOR = "def workload_model(rows, cols):\n    return {'flops': rows * cols, 'bytes_min': 8 * rows * cols}\n\n\n"
HEAD = f"import torch\n\n\n{FLOOR}"
_TOML = """
name = "tiny"
device = "cpu"
source = "kernel.cpp"
[arguments]
x = {{ shape = ["rows", "cols"], values = "{values}" }}
w = {{ shape = ["cols"] }}
y = {{ shape = {shape} }}
[tolerance]
default = {{ atol = {tolerance}, rtol = {tolerance} }}
[[workloads]]
name = "only"
dims = {{ rows = {rows}, cols = {cols} }}
{more}
"""
_KERNEL = 'extern "C" void solve(const {kind}* x, const {kind}* w, {kind}* y, int rows, int cols) {{}}\n'


def write_task(
    folder: Path,
    body: str,
    rows: int = 40,
    cols: int = 50,
    values: str = "normal",
    tolerance: float = 1e-4,
    shape: str = '["rows", "cols"]',
    kind: str = "float",
    head: str = HEAD,
    more: str = "",
) -> Path:
    """A task whose reference has ``body``, an expression in ``x``, ``w`` and the dims."""
    folder.mkdir(parents=True, exist_ok=True)
    toml = _TOML.format(values=values, tolerance=tolerance, rows=rows, cols=cols, shape=shape, more=more)
    (folder / "task.toml").write_text(toml)
    (folder / "kernel.cpp").write_text(_KERNEL.format(kind=kind))
    (folder / "reference.py").write_text(f"{head}def reference(x, w, y, rows, cols):\n    y.copy_({body})\n")
    return folder
