"""One finding of the doctor, and how to get one about a program."""

import shutil
import subprocess
from dataclasses import dataclass

EVERY = "every campaign"
CUDA = "CUDA tasks"
PROFILES = "profiles"
CHECKS = "memory checks of CUDA kernels"
FLASHINFER = "solutions of FlashInfer-Trace in C++ and CUDA"
CLAUDE = "the anthropic mind"
SANDBOX = "stronger isolation of kernels"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for. ``remedy`` is empty when it is there; ``wanted_for`` says who misses it."""

    name: str
    ok: bool
    what: str
    remedy: str = ""
    wanted_for: str = EVERY


def first_line(*command: str, timeout_s: float = 20.0) -> str | None:
    """First line of what a program prints; None when it is absent or does not exit 0 within ``timeout_s`` seconds."""
    lines = _lines(*command, timeout_s=timeout_s)
    return None if lines is None else next(iter(lines), "")


def program(name: str, remedy: str, wanted_for: str, pick: int = 0) -> Finding:
    """A finding about a program on the PATH; ``pick`` chooses the line of its version text."""
    path = shutil.which(name)
    if path is None:
        return Finding(name, False, f"{name} is not on the PATH.", remedy, wanted_for)
    lines = _lines(path, "--version")
    if lines is None:
        return Finding(name, False, f"{path} does not run.", f"Look at what it says to --version. {remedy}", wanted_for)
    return Finding(name, True, lines[pick] if -len(lines) <= pick < len(lines) else path, "", wanted_for)


def _lines(*command: str, timeout_s: float = 20.0) -> list[str] | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    return lines if done.returncode == 0 else None
