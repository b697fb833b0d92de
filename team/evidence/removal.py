"""The champion without one of its changes: by a design's options, line by line, or as a mind writes it. Pure.

A design of the catalog is written anew with the options that the change had set put back. Any other change is undone
line by line, when no later change touched the same lines. Where both fail a mind may be asked; without one there is no
tree, and nothing is claimed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from protocol.messages import Briefing, Merge, Parameter, Plan, ResolveMerge
from roles.merger import weave
from roles.minds.mind import CannotResolve, Mind
from roles.techniques.cuda.design import Setting, design_in, written
from roles.techniques.cuda.families import FAMILIES

Texts = Mapping[str, str]
"""Path relative to the task folder -> the whole text."""


@dataclass(frozen=True)
class Change:
    """A change that the champion holds: the texts before it, right after it, and the champion's, which hold later ones.

    ``parameters`` are those of its experiment.
    """

    experiment: str
    plan: Plan
    before: Texts
    after: Texts
    champion: Texts
    parameters: Mapping[str, Parameter]


@dataclass(frozen=True)
class Removed:
    """The champion's texts without the change, those alone that differ; empty when there are none, and ``how`` says
    why."""

    files: Texts
    how: str


Writer = Callable[[Change], Texts]
"""Asked for the texts without a change; raises ``CannotResolve``."""


def removed(change: Change, writer: Writer | None = None) -> Removed:
    """The champion without the change."""
    if dict(change.after) == dict(change.champion):
        return _different(change, change.before, "the champion as it was before it")
    if (texts := _by_options(change)) is not None:
        return _different(change, texts, "the design written anew with its options put back")
    if (texts := _by_lines(change)) is not None:
        return _different(change, texts, "undone line by line")
    if writer is None:
        return Removed({}, "later changes touch the same lines, and no mind was asked to write it")
    try:
        return _different(change, writer(change), "written by a mind")
    except CannotResolve as unable:
        return Removed({}, f"no mind could write it: {unable.why}")


def _different(change: Change, texts: Texts, how: str) -> Removed:
    if set(change.champion) - set(texts):
        return Removed({}, "the change added a file, which cannot be taken away")
    files = {path: text for path, text in texts.items() if text != change.champion.get(path)}
    return Removed(files, how) if files else Removed({}, "the champion holds nothing of it any more")


def _by_options(change: Change) -> Texts | None:
    """The designs that the change touched, with its options as they were; None when they are no designs."""
    touched = [path for path in change.after if change.after[path] != change.before.get(path)]
    texts = {path: _option_back(change, path) for path in touched}
    if not texts or None in texts.values():
        return None
    return {**change.champion, **{path: text for path, text in texts.items() if text is not None}}


def _option_back(change: Change, path: str) -> str | None:
    before, after, now = (
        design_in(texts.get(path, ""), FAMILIES) for texts in (change.before, change.after, change.champion)
    )
    if before is None or after is None or now is None:
        return None
    same = {(one.family.name, one.kernel, one.original) for one in (before, after, now)}
    if len(same) != 1:
        return None
    turned = {name for name in after.setting if after.setting[name] != before.setting[name]}
    setting: Setting = dict(now.setting)
    for name in turned:
        if now.setting[name] == after.setting[name]:
            setting[name] = before.setting[name]
    return written(now.family, now.original, now.kernel, setting) if now.family.sound(setting) else None


def _by_lines(change: Change) -> Texts | None:
    texts = dict(change.champion)
    for path, after in change.after.items():
        before = change.before.get(path)
        if before == after:
            continue
        if before is None or path not in texts or (woven := weave(after, texts[path], before)) is None:
            return None
        texts[path] = woven
    return texts


def by_mind(mind: Mind, briefing: Briefing, commits: tuple[str, str, str]) -> Writer:
    """A writer that asks a mind as it asks for a merge: the change's undoing is what has to come onto the champion.

    ``commits``: right after the change, before it, and the champion.
    """
    after, before, champion = commits

    def write(change: Change) -> Texts:
        plan = change.plan.model_copy(update={"change": f"Take out again: {change.plan.change}"})
        duty = ResolveMerge(
            id=f"without-{change.experiment}",
            experiment=change.experiment,
            base=after,
            candidate=before,
            main=champion,
            files=tuple(change.champion),
            plan=plan,
        )
        merge = Merge(
            duty=duty,
            briefing=briefing.model_copy(update={"editable": dict(change.champion), "base": champion}),
            base=dict(change.after),
            theirs=dict(change.before),
            main_diff=_patch(change.after, change.champion),
            their_diff=_patch(change.after, change.before),
        )
        return {**change.champion, **mind.resolve(merge).files}

    return write


def _patch(old: Texts, new: Texts) -> str:
    paths = sorted({*old, *new})
    texts = [(path, *(side.get(path, "").splitlines(keepends=True) for side in (old, new))) for path in paths]
    return "".join(line for path, a, b in texts for line in unified_diff(a, b, f"a/{path}", f"b/{path}"))
