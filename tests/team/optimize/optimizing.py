"""Small kernels, references and scripts of a mind, and the command run on them as a user does."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLOW_LOOP = """\
extern "C" void solve(const float* x, float* y, int n) {
    for (int i = 0; i < n; i++) {
        volatile float z = x[i];
        for (int k = 0; k < 6; k++) z = z * 1.0f;
        y[i] = 2.0f * z + 1.0f;
    }
}
"""
HEAD = 'extern "C" void solve(const float* x, float* y, int n) {\n'
FAST = HEAD + "    for (int i = 0; i < n; i++) y[i] = 2.0f * x[i] + 1.0f;\n}\n"
HALF = SLOW_LOOP.replace("k < 6", "k < 2")
WRONG = HEAD + "    for (int i = 0; i < n; i++) y[i] = 3.0f * x[i];\n}\n"
BROKEN = HEAD + "    undefined(x);\n}\n"
CRASHING = HEAD + "    y[0] = *(volatile float*)0;\n}\n"
NEAR = HEAD + "    for (int i = 0; i < n; i++) y[i] = (2.0f * x[i] + 1.0f) * 1.0000002f;\n}\n"
REF = "atol = 1e-4\nrtol = 1e-4\ndef reference(x, y, n):\n    y[:n].copy_(2 * x[:n] + 1)\n"
LAW = "[policy]\ncalibration_restarts = 4\nlooks = [8, 16, 32]\npairs_per_restart = 2\nrace_rounds = 1\n"
_PLAN = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback"), "as the script says")


def plan(technique: str, **more: Any) -> dict[str, Any]:
    fields = {"category": "script", "change": f"apply {technique}", "expected_gain": 0.5, "cell": "unknown/early"}
    return {**_PLAN, **fields, "technique": technique, **more}


def proposal(technique: str, *texts: str, **more: Any) -> dict[str, Any]:
    variants = [{"parameters": {"v": n}, "files": {"scale.cpp": text}} for n, text in enumerate(texts)]
    return {"plan": plan(technique, **more), "variants": variants}


def write_inputs(folder: Path, *proposals: dict[str, Any], kernel: str = SLOW_LOOP, ref: str = REF) -> Path:
    """A kernel, its reference, a script and a law that decides soon; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.cpp").write_text(kernel)
    (folder / "ref.py").write_text(ref)
    (folder / "law.toml").write_text(LAW)
    (folder / "play.json").write_text(json.dumps({"proposals": proposals}))
    return folder


def command(folder: Path, *more: str) -> list[str]:
    """The command on those inputs."""
    words = ["optimize", "scale.cpp", "--ref", "ref.py", "--n=8000", "--campaign", "law.toml"]
    return [sys.executable, "-m", "team.cli", *words, "--mind", "scripted:play.json", *more]


def optimized(folder: Path, *more: str) -> tuple[int, str]:
    """Run it to its end: exit code and everything that it said."""
    done = subprocess.run(command(folder, *more), cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout + done.stderr


def run_of(folder: Path) -> Path:
    """The one run beside the baseline."""
    (found,) = folder.glob("run_*")
    return found


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@dataclass(frozen=True)
class Ended:
    """A run that came to its end."""

    path: Path
    status: int
    said: str

    def branch(self, text: str) -> Any:
        """What is on record of the branch whose parameter is this text, whichever iteration it was in."""
        for found in (*self.path.glob("iterv*"), *self.path.glob("failed/iterv*")):
            for row in read(found / "branch_results.json")["branches"]:
                if row["parameters"] == {"text": text}:
                    return row
        raise KeyError(text)
