"""A few lines of one function's machine code, for somebody who reads them; control words are left out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from team.evidence.sass.disassembly import listings
from team.evidence.sass.opcodes import PADDING, functions_in, plain_name

LINES = 120
_OPCODES = 12
_HEAD = re.compile(r"^\s*Function : (\S+)\s*$|^\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+([^;]+;)|^(\.L\w+):")


def excerpt(artifact: Path, function: str = "", first: int = 1) -> str:
    """At most ``LINES`` lines of ``function``, of the longest one when none is named, from line ``first`` on.

    Before them stand its most frequent opcodes. ``Undisassembled`` when an artifact has no machine code to be had.
    """
    there: list[str] = []
    for text in listings(artifact):
        found = _lines(text)
        if (name := _named(function, found)) is not None:
            return _shown(text, name, found[name], first)
        there += [f"{plain_name(name)} ({len(lines)} lines)" for name, lines in found.items()]
    return f"there is no function '{function}'; there are: {', '.join(there)}"


def _lines(text: str) -> dict[str, list[str]]:
    """Function -> its instructions with their addresses, and its labels."""
    found: dict[str, list[str]] = {}
    now: list[str] | None = None
    for line in text.splitlines():
        if head := _HEAD.match(line):
            now = found.setdefault(head[1] or head[2], [])
        elif now is not None and (seen := _LINE.match(line)) and not (seen[2] or "").startswith(PADDING):
            now.append(f"{seen[3]}:" if seen[3] else f"  {seen[1]}  {' '.join(seen[2].split())}")
    return found


def _named(wanted: str, found: Mapping[str, Sequence[str]]) -> str | None:
    """The function that is meant: by its plain or mangled name; the longest one when none is."""
    meant = [name for name in found if not wanted or wanted in (name, plain_name(name))]
    return max(meant, key=lambda name: len(found[name]), default=None)


def _shown(text: str, name: str, lines: Sequence[str], first: int) -> str:
    code = functions_in(text)
    counts = next((function.opcodes for function in code.functions if function.name == name), {})
    most = ", ".join(f"{opcode} {times}" for opcode, times in Counter(counts).most_common(_OPCODES))
    part = lines[first - 1 : first - 1 + LINES]
    left = len(lines) - (first - 1 + len(part))
    head = f"{code.arch}, function {plain_name(name)}: {len(lines)} lines, from {first} on; most frequent: {most}"
    return "\n".join([head, *part, *([f"... {left} more lines"] if left > 0 else [])])
