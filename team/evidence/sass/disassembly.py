"""From a built kernel to the opcodes of its functions: ``cuobjdump`` or ``nvdisasm`` on a shared object or a cubin.

The artifact is not trusted: the tools get a copy of its bytes and a time limit. A Triton kernel's machine code lies in
the judge's own shared object as plain data, and is found there.
"""

import importlib.util
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from protocol.methods import Status
from team.evidence.sass.opcodes import MachineCode, functions_in

TIMEOUT_S = 60.0  # seconds for one run of a tool; a large kernel takes two
_CUDA_MACHINE = 190  # e_machine of machine code for NVIDIA GPUs
_ELF = b"\x7fELF"
_REMEDY = "install the CUDA toolkit or Triton, which both bring cuobjdump"


@dataclass
class Undisassembled(Exception):
    """No opcodes: ``INCONCLUSIVE`` when nothing could look, ``TOOL_ERROR`` when the tool failed; one sentence."""

    status: Status
    why: str


def find_tool(name: str) -> str | None:
    """CUDA's own tool on the PATH, else the one that Triton brings along, else None."""
    if found := shutil.which(name):
        return found
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    brought = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
    return str(brought) if brought.is_file() else None


def disassemble(artifact: Path, timeout_s: float = TIMEOUT_S) -> MachineCode:
    """The opcodes of every function in a shared object or a cubin; ``Undisassembled`` when there are none to be had."""
    found = [functions_in(text) for text in listings(artifact, timeout_s)]
    archs = sorted({code.arch for code in found})
    if len(archs) > 1:
        raise Undisassembled(Status.INCONCLUSIVE, f"{artifact.name} holds code for {', '.join(archs)}")
    return MachineCode(archs[0], tuple(function for code in found for function in code.functions))


def listings(artifact: Path, timeout_s: float = TIMEOUT_S) -> list[str]:
    """What the disassembler prints of each image in the file, at least one; ``Undisassembled`` as ``disassemble``."""
    data = artifact.read_bytes()
    images = [data] if b".nv_fatbin" in data and not _is_cuda(data) else _images(data)
    if not images:
        raise Undisassembled(Status.INCONCLUSIVE, f"{artifact.name} holds no machine code for a GPU")
    return [_listing(image, timeout_s) for image in images]


def _listing(image: bytes, timeout_s: float) -> str:
    with tempfile.TemporaryDirectory(prefix="kernelteam-sass-") as folder:
        path = Path(folder) / "image"
        path.write_bytes(image)
        said = _run(_command(path, _is_cuda(image)), timeout_s)
    code = functions_in(said)
    if not code.arch or not any(function.opcodes for function in code.functions):
        raise Undisassembled(Status.TOOL_ERROR, "the disassembler named no function with instructions")
    return said


def _command(path: Path, plain: bool) -> list[str]:
    """``cuobjdump`` reads both kinds of file, ``nvdisasm`` cubins only."""
    if tool := find_tool("cuobjdump"):
        return [tool, "-sass", str(path)]
    if plain and (tool := find_tool("nvdisasm")):
        return [tool, "-c", str(path)]
    raise Undisassembled(Status.INCONCLUSIVE, f"there is no cuobjdump on this machine: {_REMEDY}")


def _run(command: list[str], timeout_s: float) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise Undisassembled(Status.TOOL_ERROR, f"{name} needed more than {timeout_s:g} s") from None
    except OSError as error:
        raise Undisassembled(Status.TOOL_ERROR, f"{name} did not start: {error.strerror}") from None
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:200]
        raise Undisassembled(Status.TOOL_ERROR, f"{name} left with exit status {done.returncode}: {said}")
    return done.stdout


def _images(data: bytes) -> list[bytes]:
    """Every cubin in the bytes, the file itself among them."""
    found: list[bytes] = []
    at = data.find(_ELF)
    while at >= 0:
        size = _size(data, at)
        if size:
            found.append(data[at : at + size])
        at = data.find(_ELF, at + max(size, 1))
    return found


def _is_cuda(data: bytes) -> bool:
    return _size(data, 0) > 0


def _size(data: bytes, at: int) -> int:
    """Bytes of the cubin that begins at ``at``: its tables end it. 0 when none begins there."""
    head = data[at : at + 64]
    if len(head) < 64 or not head.startswith(_ELF) or struct.unpack_from("<H", head, 18)[0] != _CUDA_MACHINE:
        return 0
    programs, sections = struct.unpack_from("<QQ", head, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
    end = max(64, programs + program_size * program_count, sections + section_size * section_count)
    return end if at + end <= len(data) else 0
