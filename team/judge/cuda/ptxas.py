"""What ``ptxas -v`` says of each kernel: registers, shared memory, spills. Pure text work."""

import re
import shutil
import subprocess
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


@dataclass(frozen=True)
class KernelUse:
    """Resources of one kernel: registers per thread, static shared memory, stack and spills in bytes."""

    name: str
    registers: int = 0
    shared: int = 0
    stack: int = 0
    spilled: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.registers} registers, {self.shared} B shared, "
            f"{self.stack} B stack, {self.spilled} B spilled"
        )


def kernel_uses(output: str) -> tuple[KernelUse, ...]:
    """Every kernel in the compiler's output, in its order."""
    found: list[KernelUse] = []
    name, stack, spilled = "", 0, 0
    for line in output.splitlines():
        if entry := _ENTRY.search(line):
            name, stack, spilled = entry.group(1), 0, 0
        elif spills := _SPILLS.search(line):
            stack, spilled = int(spills.group(1)), int(spills.group(2)) + int(spills.group(3))
        elif (used := _USED.search(line)) and name:
            found.append(KernelUse(name, int(used.group(1)), int(used.group(2) or 0), stack, spilled))
            name = ""
    return tuple(found)


def remarks(output: str) -> tuple[str, ...]:
    """One line per kernel for the record of a build, with readable names where ``cu++filt`` is installed."""
    text = "\n".join(str(use) for use in kernel_uses(output))
    tool = shutil.which("cu++filt")
    if tool and text:
        done = subprocess.run([tool], input=text, capture_output=True, text=True, timeout=20, check=False)
        text = done.stdout if done.returncode == 0 else text
    warnings = [line.strip() for line in output.splitlines() if "warning" in line.lower()]
    return (*text.splitlines(), *warnings)[:40]
