"""Writing a kernel anew as one of the designs: the step from a kernel as somebody wrote it to a family's default."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.syntax import Grammar, Source
from roles.techniques.cuda.design import Family, as_written, defaults, design_in, writable, written
from roles.techniques.transform import Match, TreeTransform

_LEAST = 0.02  # expected of a family in place of one that promises more and was kept


class Enter(TreeTransform):
    """A kernel becomes a design of one family; every option is a parameter."""

    grammar: ClassVar[Grammar] = "cuda"

    def __init__(self, family: Family) -> None:
        self.family = family

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels that the family can write, in the file as it was before another family wrote it."""
        from roles.techniques.cuda.families import FAMILIES

        design = design_in(source.text, FAMILIES)
        if design is not None and design.family is self.family:
            return
        start = as_written(source.text, design)
        for name, evidence, kernel in writable(self.family, start):
            node = kernel.node if start == source.text else source.root
            seen = evidence if design is None else f"{evidence} before {design.family.name} wrote it"
            subject, choices, sound = f"the kernel `{name}`", self.family.options, self.family.sound
            gain = self.family.promise - (design.family.promise if design is not None else 0.0)
            yield Match(node, subject, seen, (start, name), max(gain, _LEAST), choices, sound)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The design's text."""
        start, kernel = match.data
        chosen = {name: value for name, value in parameters.items() if name in self.family.options}
        text = written(self.family, start, kernel, {**defaults(self.family), **chosen})
        if text is None:
            raise LookupError(f"{kernel} is not a problem of {self.family.name}")
        return text
