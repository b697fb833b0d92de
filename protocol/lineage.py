"""Which experiments' changes a commit contains: a tree of commits, each one change away from the one before.

A landed merge follows the main that it was put on; a tree that landed as a whole follows what its author changed. So
the changes of a commit are those on its way from the baseline, and comparing two commits walks no further than to
where their ways part.
"""

from dataclasses import dataclass, field


@dataclass
class Lineage:
    """Commits with the one before and the experiment between them. The baseline, and what is unknown, has none."""

    before: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    depth: dict[str, int] = field(default_factory=dict[str, int])

    def grow(self, commit: str, before: str, experiment: str) -> None:
        """``commit`` holds what ``before`` holds, and the change of ``experiment``."""
        self.before[commit] = (before, experiment)
        self.depth[commit] = self.depth.get(before, 0) + 1

    def holds(self, commit: str) -> frozenset[str]:
        """The experiments whose changes are in ``commit``."""
        found: set[str] = set()
        while commit in self.before:
            commit, experiment = self.before[commit]
            found.add(experiment)
        return frozenset(found)

    def apart(self, one: str, other: str) -> tuple[frozenset[str], frozenset[str]]:
        """Experiments since the two commits' ways parted: on the way to ``one``, on the way to ``other``."""
        ways: tuple[set[str], set[str]] = (set(), set())
        while one != other:
            deeper = self.depth.get(one, 0) >= self.depth.get(other, 0)
            if (one if deeper else other) not in self.before:
                break
            if deeper:
                one, experiment = self.before[one]
            else:
                other, experiment = self.before[other]
            ways[0 if deeper else 1].add(experiment)
        return frozenset(ways[0]), frozenset(ways[1])
