"""One option of a design at a time: the kernel is written anew with another value of it.

On a kernel that nobody has redesigned yet, the design and the option come together: a rewrite that its plan names.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.syntax import Grammar, Source
from roles.techniques.cuda.design import Design, Family, Setting, as_written, defaults, design_in, writable, written
from roles.techniques.transform import Choices, Match, Sound, TreeTransform, one_at_a_time


class Move(TreeTransform):
    """Other values of ``names``; the family's core options may be retuned on the way.

    A ``rising`` move offers only larger values than the design's own. Where a name is in the ``lead``, the others are
    changed only along with it.
    """

    grammar: ClassVar[Grammar] = "cuda"

    def __init__(self, families: tuple[Family, ...], *names: str, rising: bool = False, lead: str = "") -> None:
        self.all = families
        self.names = names
        self.rising = rising
        self.lead = lead
        wanted = {lead} if lead else set(names)
        self.families = tuple(each for each in families if wanted & set(each.options))

    def matches(self, source: Source) -> Iterator[Match]:
        """The design that the text is, or else every kernel that a family could redesign."""
        design = design_in(source.text, self.all)
        if design is not None and design.family in self.families:
            yield from self._changes(source, design, f"the design of `{design.kernel}`", "written by the catalog")
            return
        start = as_written(source.text, design)
        for family in self.families:
            for name, evidence, _ in writable(family, start):
                changed = Design(family, name, start, defaults(family))
                subject = f"the kernel `{name}` in {family.title}"
                yield from self._changes(source, changed, subject, evidence)

    def _changes(self, source: Source, design: Design, subject: str, evidence: str) -> Iterator[Match]:
        """The one site: crowded, because the constants of a design are knobs of its file, too."""
        mine = [name for name in self.names if name in design.family.options]
        found = _choices(design, mine, [self.lead] if self.lead else mine, self.rising)
        if found is not None:
            choices, sound = found
            now = " ".join(f"{name}={design.setting[name]}" for name in mine)
            evidence = f"{evidence}: {now}"
            near = one_at_a_time(choices)
            yield Match(source.root, subject, evidence, design, None, choices, sound, True, near)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """The design's text with the options changed."""
        design: Design = match.data
        chosen = {name: value for name, value in parameters.items() if name in design.family.options}
        text = written(design.family, design.original, design.kernel, {**design.setting, **chosen})
        if text is None:
            raise LookupError(f"{design.kernel} is not a problem of {design.family.name}")
        return text


def _choices(design: Design, mine: list[str], changed: list[str], rising: bool) -> tuple[Choices, Sound] | None:
    """Values for the options and for the core, the first sound change first; None when no change is sound."""
    family, now = design.family, design.setting

    def sound(setting: Mapping[str, Parameter]) -> bool:
        whole: Setting = {**now, **{name: value for name, value in setting.items() if name in family.options}}
        return any(whole[name] != now[name] for name in changed) and family.sound(whole)

    tuned = [name for name in family.core if name not in mine]
    values = {name: _first(now[name], family.options[name]) for name in (*mine, *tuned)}
    if rising:
        values |= {name: tuple(v for v in values[name] if int(v) >= int(now[name])) for name in mine}
    for core in product(*(values[name] for name in tuned)):
        changes = product(*(values[name] for name in mine))
        for change in changes:
            setting = {**dict(zip(mine, change, strict=True)), **dict(zip(tuned, core, strict=True))}
            if sound(setting):
                return {name: _first(setting[name], listed) for name, listed in values.items()}, sound
    return None


def _first(value: Parameter, values: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The values with one of them, listed or not, in front."""
    return (value, *(each for each in values if each != value))
