"""A mind whose plans are all refused: what costs money counts as a failure, what is free as no idea."""

from types import SimpleNamespace
from typing import cast

import pytest

from protocol import events as ev
from protocol.messages import Briefing, Experiment, Phase, Plan, Position, Proposal, Role, Variant
from team.coordination import MAX_REFUSALS
from team.desk import Desk
from team.experiment import perform_experiment
from team.workspace.objects import Refused

PLAN = Plan(
    technique="t", category="c", bottleneck="b", evidence="e", change="c", mechanism="m", expected_gain=0.1,
    disproof="d", fallback="f", cell="unknown/early",
)  # fmt: skip
DUTY = Experiment(id="e1", base="b" * 40)


class StubbornMind:
    """Proposes the same plan again and again, at a price."""

    def __init__(self, name: str, dollars: float) -> None:
        self.name, self.dollars, self.asked = name, dollars, 0

    def propose(self, briefing: Briefing) -> Proposal:
        self.asked += 1
        return Proposal(plan=PLAN, variants=(Variant(parameters={}, files={"k.cu": "x"}),), dollars=self.dollars)


class StrictLead:
    """Admits nothing."""

    def __init__(self) -> None:
        self.refused: list[float] = []

    def briefing(self, base: str) -> Briefing:
        return Briefing(
            agent="a", role=Role.EXPLORER, number=0, task="t", language="cuda", numerics="reference", editable={},
            base=base, workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
        )  # fmt: skip

    def admit(self, experiment: str, plan: Plan, commits: list[str], dollars: float) -> str:
        self.refused.append(dollars)
        return "it was tried already"

    def refuse(self, experiment: str, plan: Plan, why: str, dollars: float) -> None:
        self.refused.append(dollars)


class Hub:
    """Commits everything, or nothing."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def read(self, paths: tuple[str, ...], commit: str) -> dict[str, str]:
        return {}

    def commit(self, *told: object) -> str:
        if self.strict:
            raise Refused("the text is as it was")
        return "c" * 40

    def anchor(self, name: str, commit: str) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize(
    ("name", "dollars", "strict"),
    [("command", 0.3, False), ("command", 0.3, True), ("anthropic", 0.0, False), ("catalog", 0.0, False)],
)
def test_refused_plans_of_a_mind_that_costs_money_are_a_failure(name: str, dollars: float, strict: bool) -> None:
    mind, lead = StubbornMind(name, dollars), StrictLead()
    nothing = SimpleNamespace(fetch=lambda commit: None, reset=lambda commit: None)
    device = SimpleNamespace(kernel_cores=(0,), cores=(0,))
    desk = SimpleNamespace(
        supply=nothing, worktree=nothing, mind=mind, lead=lead, hub=Hub(strict), editable=("k.cu",), device=device,
        name="a", settings=4,
    )  # fmt: skip
    told = perform_experiment(cast("Desk", desk), DUTY)
    assert isinstance(told, ev.NothingProposed)
    assert told.failed == (name != "catalog")
    assert mind.asked == MAX_REFUSALS
    assert lead.refused == [dollars] * MAX_REFUSALS, "what was paid is counted by each refusal, and not twice"
    assert told.dollars == 0.0
