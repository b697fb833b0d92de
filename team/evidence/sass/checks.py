"""Whether a method is in the machine code, against the parent's: one ``SassCheck`` for each method. Pure.

One function of the kernel has to show the method against its counterpart in the parent: the function of the same name,
else those of the same name before its template arguments, else all of them. So an instance that keeps odd sizes right
does not hide the one that is fast.
"""

from collections.abc import Iterable, Sequence

from protocol.methods import SassCheck, Status
from roles.techniques.machine_code import CARDS, FAMILY, SIGNATURES, SILENT
from roles.techniques.signatures import Clause, Signature
from team.evidence.sass.clauses import Counts, Word, every, holds, kinds_of, some
from team.evidence.sass.opcodes import Function, MachineCode, count

_STATUS = {True: Status.PASS, False: Status.FAIL, None: Status.INCONCLUSIVE}


def method_of(name: str) -> str:
    """The method of the table that a name means: a card's, a method's, or one with its axis in front."""
    bare = name.rpartition(".")[2]
    return CARDS.get(bare, bare)


def signature_of(name: str) -> Signature | None:
    """What shows a method; None when nothing in the machine code does."""
    return SIGNATURES.get(method_of(name))


def check_method(name: str, now: MachineCode, before: MachineCode | None) -> SassCheck:
    """One method in ``now`` against its parent ``before``; without a parent, only what is missing can be told."""
    signature = signature_of(name)
    if signature is None:
        instead = SILENT.get(method_of(name), "nothing in the table shows it")
        return SassCheck(method=name, status=Status.NOT_APPLICABLE, why=instead, arch=now.arch)
    family = FAMILY.get(now.arch)
    if family is None:
        return _unknown(name, now.arch, f"there is no table for {now.arch}")
    if before is not None and FAMILY.get(before.arch) != family:
        return _unknown(name, now.arch, f"the parent was built for {before.arch or 'nothing known'}")
    clause = signature.clauses.get(family)
    if clause is None:
        return _unknown(name, now.arch, f"{now.arch} has no instruction that shows it")
    return _checked(name, clause, signature.whole, now, before)


def check_methods(names: Iterable[str], now: MachineCode, before: MachineCode | None) -> tuple[SassCheck, ...]:
    """See ``check_method``."""
    return tuple(check_method(name, now, before) for name in names)


def _unknown(name: str, arch: str, why: str) -> SassCheck:
    return SassCheck(method=name, status=Status.INCONCLUSIVE, why=why, arch=arch)


def _checked(name: str, clause: Clause, whole: bool, now: MachineCode, before: MachineCode | None) -> SassCheck:
    total = before.opcodes if before else None
    if whole:
        return _said(name, clause, now.arch, holds(clause, now.opcodes, total), "", now.opcodes, total)
    words = [(_shown(clause, function, before), function) for function in now.functions]
    word = some(found for found, _ in words)
    for found, function in words:
        if word is True and found is True:
            beside = counterparts(function, before.functions) if before else ()
            former = _together(beside) if before else None
            return _said(name, clause, now.arch, word, function.plain_name, function.opcodes, former)
    return _said(name, clause, now.arch, word, "", now.opcodes, total)


def _shown(clause: Clause, function: Function, before: MachineCode | None) -> Word:
    if before is None:
        return holds(clause, function.opcodes, None)
    beside = counterparts(function, before.functions)
    return every(holds(clause, function.opcodes, other.opcodes) for other in beside)


def counterparts(function: Function, others: Sequence[Function]) -> tuple[Function, ...]:
    """What a function has to be compared with, among its parent's."""
    same = tuple(other for other in others if other.name == function.name)
    alike = tuple(other for other in others if other.plain_name == function.plain_name)
    return same or alike or tuple(others)


def _together(functions: Iterable[Function]) -> Counts:
    return MachineCode("", tuple(functions)).opcodes


def _said(
    name: str, clause: Clause, arch: str, word: Word, kernel: str, now: Counts, before: Counts | None
) -> SassCheck:
    kinds = tuple(dict.fromkeys(kinds_of(clause)))
    seen = {kind: count(now, (kind,)) for kind in kinds}
    former = {kind: count(before, (kind,)) for kind in kinds} if before is not None else {}
    told = ", ".join(f"{kind} {seen[kind]}" + (f" (before {former[kind]})" if former else "") for kind in kinds)
    lead = {True: "it is there", False: "it is not there", None: "it cannot be told"}[word]
    place = f" in {kernel}" if kernel else ""
    alone = "" if before is not None else "; there is no parent to compare with"
    return SassCheck(
        method=name, status=_STATUS[word], why=f"{lead}{place}: {told}{alone}"[:500], arch=arch, kernel=kernel,
        now=seen, before=former,
    )  # fmt: skip
