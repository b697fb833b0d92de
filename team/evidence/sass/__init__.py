"""SASS: what the machine code of a kernel says of the methods that are claimed for it.

``verify(methods, artifact, parent)`` is all that others need: a ``SassCheck`` for each method, whatever happens.
"""

from collections.abc import Iterable
from pathlib import Path

from protocol.methods import SassCheck, Status
from team.evidence.sass.checks import check_method, check_methods, method_of, signature_of
from team.evidence.sass.disassembly import TIMEOUT_S, Undisassembled, disassemble, find_tool
from team.evidence.sass.opcodes import Function, MachineCode, count, functions_in, matches

__all__ = [
    "Function",
    "MachineCode",
    "SassCheck",
    "Status",
    "Undisassembled",
    "check_method",
    "check_methods",
    "count",
    "disassemble",
    "find_tool",
    "functions_in",
    "matches",
    "method_of",
    "signature_of",
    "verify",
]


def verify(
    methods: Iterable[str], artifact: Path, parent: Path | None, timeout_s: float = TIMEOUT_S
) -> tuple[SassCheck, ...]:
    """Each method in a built kernel (shared object or cubin, Triton's too) against its parent's."""
    names = tuple(methods)
    if not any(signature_of(name) for name in names):
        nothing = MachineCode("", ())
        return check_methods(names, nothing, nothing)
    try:
        now = disassemble(artifact, timeout_s)
        before = disassemble(parent, timeout_s) if parent is not None else None
    except Undisassembled as failed:
        return tuple(_failed(name, failed) for name in names)
    return check_methods(names, now, before)


def _failed(name: str, failed: Undisassembled) -> SassCheck:
    if signature_of(name) is None:
        return check_method(name, MachineCode("", ()), None)
    return SassCheck(method=name, status=failed.status, why=failed.why)
