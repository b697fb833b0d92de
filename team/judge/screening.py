"""The screen as the judge applies it to one task: to the text before a build, then to what was preprocessed. Trusted.

What the task's own copy of a file already does is permitted, so a base is never refused for what a human wrote.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from team.judge.failures import Forbidden
from team.judge.screen.native import Finding, Licence, own_constructs, screen_expanded, screen_text
from team.tasks.spec import TaskSpec

NAMED = 3  # findings that a sentence names; more say nothing new


@dataclass(frozen=True)
class Screening:
    """The rules of one task for its editable files."""

    licence: Licence
    editable: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Builds that were looked at under other rules are other builds."""
        return self.licence.identity

    def text(self, files: Mapping[str, str]) -> None:
        """Raise ``Forbidden`` for what stands in the editable files as written."""
        _refuse(screen_text(files, [name for name in self.editable if name in files], self.licence))

    def expanded(self, text: str) -> None:
        """Raise ``Forbidden`` for what the preprocessor made of the editable files."""
        _refuse(screen_expanded(text, self.editable, self.licence))


def screening_of(spec: TaskSpec, originals: Mapping[str, str]) -> Screening | None:
    """The screening of a task whose own copy of the editable files is ``originals``; None where it is switched off."""
    if not spec.screen.active:
        return None
    bare = Licence(
        frozenset(spec.screen.headers),
        spec.screen.libraries,
        spec.numerics == "approximate",
        tvm_ffi=spec.build.binding == "tvm-ffi",
    )
    own = own_constructs(originals, spec.editable_files, bare)
    return Screening(replace(bare, own=own), spec.editable_files)


def _refuse(found: Collection[Finding]) -> None:
    if found:
        said = list(dict.fromkeys(map(str, found)))
        more = f", and {len(said) - NAMED} more" if len(said) > NAMED else ""
        raise Forbidden("; ".join(said[:NAMED]) + more)
