"""Minds that say what they were told to say: for tests, and for the campaign's own A/A check."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pydantic import Field

from protocol.messages import (
    Briefing,
    Chronicle,
    Compared,
    Excuse,
    Insight,
    Merge,
    Message,
    PassedOver,
    Plan,
    Proposal,
    Recheck,
    RecheckReport,
    ResearchReport,
    Resolution,
    SearchReport,
    Source,
    Variant,
)
from roles.minds.mind import CannotResolve, NothingToPropose

Script = Sequence[Proposal] | Callable[[Briefing], Proposal]


class Play(Message):
    """A script on disk, as JSON: proposals in their order, and resolutions by the technique of the kept plan."""

    proposals: tuple[Proposal, ...]
    resolutions: dict[str, Resolution] = Field(default_factory=dict)


class ScriptedMind:
    """Answers from a list, by the number of experiments this agent has done, or from a callable."""

    name = "scripted"

    def __init__(self, script: Script, resolutions: Mapping[str, Resolution] = MappingProxyType({})) -> None:
        self._script = script
        self._resolutions = resolutions

    @classmethod
    def from_file(cls, path: Path) -> "ScriptedMind":
        """The mind of a ``Play``."""
        play = Play.model_validate_json(path.read_bytes())
        return cls(play.proposals, play.resolutions)

    def propose(self, briefing: Briefing) -> Proposal:
        """The next line of the script."""
        if callable(self._script):
            return self._script(briefing)
        if briefing.number >= len(self._script):
            raise NothingToPropose(f"the script has {len(self._script)} proposals and all have been given")
        return self._script[briefing.number]

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """A script does not repair."""
        return None

    def resolve(self, merge: Merge) -> Resolution:
        """What the script says about this technique."""
        technique = merge.duty.plan.technique
        if technique not in self._resolutions:
            raise CannotResolve(f"the script has no resolution for {technique}")
        return self._resolutions[technique]

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """Says that it follows a script."""
        return SearchReport(
            id=duty_id,
            queries=("the script",),
            sources=(Source(title="scripted mind", locator="roles/minds/scripted.py"),),
            technique="scripted",
            category=next(iter(briefing.allowed_categories), "scripted"),
            why="a scripted mind follows its script",
            dollars=0.0,
        )

    def recheck(self, briefing: Briefing, duty: Recheck) -> RecheckReport:
        """Says that it follows a script."""
        compared = Compared(what="script", card="none", seen="a scripted mind has no cards", holds=True)
        return RecheckReport(
            id=duty.id, experiment=duty.experiment, technique=duty.technique, compared=(compared,), suspect=""
        )

    def reflect(self, chronicle: Chronicle, duty_id: str) -> ResearchReport:
        """Counts the record, and follows its script."""
        what = f"{len(chronicle.history)} experiments are on record"
        insight = Insight(what=what, why="the record says so", next="the script's next line")
        return ResearchReport(id=duty_id, insights=(insight,))


class NoChangeMind(ScriptedMind):
    """Proposes edits that change nothing but a comment: an A/A campaign, in which nothing may be kept."""

    name = "noop"

    def __init__(self) -> None:
        super().__init__(_no_change)


def _no_change(briefing: Briefing) -> Proposal:
    path = sorted(briefing.editable)[0]
    mark = "//" if briefing.language in ("cpp", "cuda") else "#"
    text = briefing.editable[path].rstrip("\n")
    plan = Plan(
        technique=f"no_change_{briefing.agent}_{briefing.number}",
        category=_category(briefing),
        bottleneck="none: this is an A/A check",
        evidence="the edit adds one comment",
        change="add a comment line",
        mechanism="none: the compiled code is the same",
        expected_gain=0.0,
        disproof="a KEEP would show that the harness finds gains where there are none",
        fallback="none",
        cell=f"{briefing.position}/{briefing.phase}",
        rewrite="",
        differs="",
        cites=briefing.search.id if briefing.search is not None else "",
        passed_over=tuple(_unwanted(name) for name in _due(briefing)),
    )
    comment = f"{text}\n{mark} no change {briefing.agent} {briefing.number}\n"
    return Proposal(plan=plan, variants=(Variant(files={path: comment}),), dollars=0.0)


def _category(briefing: Briefing) -> str:
    """The direction's in turn, or two of its own: the law closes a category after reverts in a row."""
    names = [name for name in briefing.allowed_categories if name not in briefing.closed_categories]
    names = names or list(briefing.allowed_categories) or ["none-0", "none-1"]
    return names[briefing.number % len(names)]


def _unwanted(name: str) -> PassedOver:
    return PassedOver(name=name, kind=Excuse.PREREQUISITE, reason="an A/A check applies no technique")


def _due(briefing: Briefing) -> list[str]:
    """What the law wants next: heavy lifts and items of the sweep."""
    return [*(lift.technique for lift in briefing.lifts), *(item.name for item in briefing.sweep)]
