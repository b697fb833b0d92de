"""Whether a clause of a signature holds between two counts of opcodes: yes, no, or not to be told. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from roles.techniques.signatures import AllOf, AnyOf, Clause, Denser, Grew, Here, Hint, More, Shrank
from team.evidence.sass.opcodes import count

Counts = Mapping[str, int]
Word = bool | None
"""True, False, or None where it cannot be told."""


def holds(clause: Clause, now: Counts, before: Counts | None) -> Word:
    """Kleene's three values; ``before`` is None when there is no parent to compare with."""
    match clause:
        case Here(kinds, least):
            return count(now, kinds) >= least
        case Grew(kinds, least):
            seen = count(now, kinds)
            return False if seen < least else None if before is None else seen > count(before, kinds)
        case Shrank(kinds):
            return None if before is None else count(now, kinds) < count(before, kinds)
        case Denser():
            return _denser(clause, now, before)
        case More(part, than):
            return count(now, part) > count(now, than)
        case Hint(kinds):
            return None if count(now, kinds) else False
        case AllOf(clauses):
            return every(holds(one, now, before) for one in clauses)
        case AnyOf(clauses):
            return some(holds(one, now, before) for one in clauses)


def _denser(clause: Denser, now: Counts, before: Counts | None) -> Word:
    if count(now, clause.part) == 0:
        return False
    if before is None:
        return None
    whole = clause.whole if count(now, clause.whole) or count(before, clause.whole) else clause.otherwise
    of, former = count(now, whole), count(before, whole)
    if of == 0 or former == 0:
        return None
    return count(now, clause.part) / of > clause.factor * count(before, clause.part) / former


def every(words: Iterable[Word]) -> Word:
    """True when all are, False when one is not, else None."""
    found = list(words)
    return False if False in found else None if None in found else True


def some(words: Iterable[Word]) -> Word:
    """True when one is, False when none can be, else None."""
    found = list(words)
    return True if True in found else None if None in found else False


def kinds_of(clause: Clause) -> Iterator[str]:
    """Every pattern that a clause looks at, in its order."""
    match clause:
        case Here(kinds) | Grew(kinds) | Shrank(kinds) | Hint(kinds):
            yield from kinds
        case Denser(part, whole, otherwise):
            yield from (*part, *whole, *otherwise)
        case More(part, than):
            yield from (*part, *than)
        case AllOf(clauses) | AnyOf(clauses):
            for one in clauses:
                yield from kinds_of(one)
