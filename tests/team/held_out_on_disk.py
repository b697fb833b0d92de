"""A task with one listed shape and one that no mind is told of, written to a folder."""

from pathlib import Path

from team.tasks.spec import HELD_OUT

SECRET = "7919"  # a size that is nowhere else
TASK = """\
name = "doubled"
source = "doubled.cpp"
[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }
[shapes]
unlisted = false
reason = "this test is about what that check does not find"
[[workloads]]
name = "listed"
dims = { n = 60000 }
[policy]
looks = [4, 8]
pairs_per_restart = 2
calibration_restarts = 4
struck_restarts = 1
"""
HELD = f"""\
[[workloads]]
name = "prime {SECRET}"
dims = {{ n = {SECRET} }}
"""
SLOW = "for (int i = 0; i < n; i++) { volatile float z = 0; for (int k = 0; k < 8; k++) z += 1; y[i] = 2 * x[i]; }"
FAST = "for (int i = 0; i < n; i++) y[i] = 2 * x[i];"


def kernel(body: str) -> str:
    return f'extern "C" void solve(const float* x, float* y, int n) {{\n    {body}\n}}\n'


def write_task(folder: Path, held: str = HELD) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "doubled.cpp").write_text(kernel(SLOW))
    (folder / "reference.py").write_text("def reference(x, y):\n    y.copy_(2 * x)\n")
    (folder / HELD_OUT).write_text(held)
    return folder
