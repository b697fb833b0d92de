"""The probes: what nvcc makes of each, by architecture. One compilation for all of them."""

import shutil
import subprocess
from pathlib import Path

from team.evidence.sass import Function, MachineCode, disassemble, find_tool

PROBES = Path(__file__).parent / "probes"
TARGETS = ("80", "90a", "100a", "120a")
HAVE_TOOLS = shutil.which("nvcc") is not None and find_tool("cuobjdump") is not None


def assembled(target: str, into: Path) -> dict[str, Function]:
    """Every probe that there is for an architecture, by name."""
    cubin = into / f"probes-{target}.cubin"
    command = ["nvcc", "-O3", "-std=c++17", "-w", "-cubin", f"-gencode=arch=compute_{target},code=sm_{target}"]
    subprocess.run([*command, "-o", str(cubin), str(PROBES / "all.cu")], check=True, timeout=120)
    return {function.name: function for function in disassemble(cubin).functions}


def alone(target: str, function: Function) -> MachineCode:
    """A module with one probe in it."""
    return MachineCode(f"sm_{target}", (function,))
