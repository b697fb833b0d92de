"""The opcode column of a disassembly: what each function executes, counted. Pure text work.

Only the column counts. Names of functions and sections, operands, control words, comments and data can never be taken
for an instruction, whatever they are called.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

_ARCH = re.compile(r"^\s*(?:\.target\s+|code for |arch = )(sm_\w+)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function : (\S+)\s*$|^\s*\.section\s+\.text\.([^,\s]+),")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P[T0-9]\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)(?=[\s;,])"
)
_PART = re.compile(r"\d+")
PADDING = "NOP"


@dataclass(frozen=True)
class Function:
    """One function, and how often each opcode with its modifiers stands in it."""

    name: str
    opcodes: Mapping[str, int]

    @property
    def plain_name(self) -> str:
        """The name in the source, without namespaces, template arguments and parameters."""
        return plain_name(self.name)


@dataclass(frozen=True)
class MachineCode:
    """Everything that one artifact holds for one architecture, such as ``sm_90a``."""

    arch: str
    functions: tuple[Function, ...]

    @property
    def opcodes(self) -> Counter[str]:
        """All functions together."""
        total: Counter[str] = Counter()
        for function in self.functions:
            total.update(function.opcodes)
        return total


def functions_in(text: str) -> MachineCode:
    """What ``cuobjdump -sass`` or ``nvdisasm -c`` printed."""
    found: dict[str, Counter[str]] = {}
    now: Counter[str] | None = None
    for line in text.splitlines():
        if head := _FUNCTION.match(line):
            now = found.setdefault(head[1] or head[2], Counter())
        elif now is not None and (seen := _INSTRUCTION.match(line)) and seen[1] != PADDING:
            now[seen[1]] += 1
    arch = _ARCH.search(text)
    return MachineCode(arch[1] if arch else "", tuple(Function(name, count) for name, count in found.items()))


def matches(pattern: str, opcode: str) -> bool:
    """Whether an opcode is of a kind: ``LDG.128`` is every LDG whose modifiers hold 128, ``UTC?MMA`` any such base.

    The base must be the whole base; the modifiers of the pattern must stand among the opcode's, in this order.
    """
    wanted, seen = pattern.split("."), opcode.split(".")
    if not fnmatchcase(seen[0], wanted[0]):
        return False
    left = iter(seen[1:])
    return all(any(fnmatchcase(one, want) for one in left) for want in wanted[1:])


def count(opcodes: Mapping[str, int], patterns: Iterable[str]) -> int:
    """How many instructions are of one of these kinds; each counts once."""
    kinds = tuple(patterns)
    return sum(times for opcode, times in opcodes.items() if any(matches(kind, opcode) for kind in kinds))


def plain_name(mangled: str) -> str:
    """The last identifier of a mangled name's path; a name that is not mangled is itself."""
    if not mangled.startswith("_Z"):
        return mangled
    at, name = 2 + (mangled[2:3] == "N"), ""
    while part := _PART.match(mangled, at):
        end = part.end() + int(part[0])
        name, at = mangled[part.end() : end], end
    return name or mangled
