"""What the rules ask at every duty and every plan, kept so that nobody walks over all agents or all experiments.

Everything here follows from the rest of the state and from nothing else (``rebuilt`` says how; a test holds both
equal). ``protocol.state`` refreshes the agent of every event after its handler, so handlers need not know of this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from protocol.messages import Experiment, Rest, Stop

if TYPE_CHECKING:
    from protocol.record import AgentState, CampaignState, ExperimentState

_IDLE = tuple(duty.model_fields["kind"].default for duty in (Rest, Stop))


@dataclass
class Index:
    """Sets of agents and tallies of verdicts. Dicts of None are sets that keep their order."""

    open: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """Kind of duty -> the agents that have one open."""
    opened: dict[str, str] = field(default_factory=dict[str, str])
    """Agent -> the kind of its open duty."""
    unmeasured: dict[str, str] = field(default_factory=dict[str, str])
    """Agent -> its device, while that has no baseline."""
    waiting: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """Device without a baseline -> the agents that work on it."""
    absent: dict[str, None] = field(default_factory=dict[str, None])
    """Agents without a living process."""
    fresh: dict[str, None] = field(default_factory=dict[str, None])
    """Agents with a living process that have not reverted as often as makes one stuck."""
    exhausted: dict[str, None] = field(default_factory=dict[str, None])
    """Agents whose mind had no idea on some base, which may not be theirs any more."""
    running: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """Change on a base (``change_of``) -> the agents that have it in flight."""
    changing: dict[str, str] = field(default_factory=dict[str, str])
    """Agent -> the change that it has in flight."""
    tally: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Agent -> a verdict's word -> how many of its experiments got it. Words, for a snapshot writes thousands of them,
    and a member of an enumeration has to be asked for its own."""

    own: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Agent -> where the verdicts on its experiments stand in ``state.verdicts``."""
    judged: int = 0
    """How many verdicts were counted."""

    def busy(self) -> bool:
        """Whether anybody has a duty open that is work."""
        return any(kind not in _IDLE for kind in self.open)

    def with_open(self, kind: str) -> dict[str, None]:
        """The agents that have a duty of this kind open."""
        return self.open.get(kind, {})

    def count(self, experiment: ExperimentState) -> None:
        """Tally a verdict."""
        assert experiment.verdict is not None
        mine = self.tally.setdefault(experiment.agent, {})
        word = experiment.verdict.value
        mine[word] = mine.get(word, 0) + 1
        self.own.setdefault(experiment.agent, []).append(self.judged)
        self.judged += 1

    def refresh(self, state: CampaignState, name: str) -> None:
        """File one agent anew after an event of its own."""
        agent = state.agents[name]
        _move(self.open, self.opened, name, agent.open.duty.kind if agent.open else None)
        device = state.device_of(agent)
        _move(self.waiting, self.unmeasured, name, None if device in state.baselines else device)
        _file(self.absent, name, not agent.alive)
        _file(self.fresh, name, agent.alive and agent.streaks.since_fresh < state.policy.stuck_after)
        _file(self.exhausted, name, bool(agent.exhausted_on) or state.failing(agent))
        _move(self.running, self.changing, name, _change_in_flight(state, agent))

    def measured(self, device: str) -> None:
        """A device got its baseline: whoever works on it is measured."""
        for name in self.waiting.pop(device, {}):
            del self.unmeasured[name]


def rebuilt(state: CampaignState) -> Index:
    """The index of a state, from the state alone."""
    index = Index()
    for name in state.agents:
        index.refresh(state, name)
    for ident in state.verdicts:
        index.count(state.experiments[ident])
    return index


def change_of(base: str, technique: str, change: str) -> str:
    """One key for a change on a base: a digest, for the words of a mind are long and each key stays for good."""
    return blake2b(f"{base}\n{technique}\n{change}".encode(), digest_size=12).hexdigest()


def _change_in_flight(state: CampaignState, agent: AgentState) -> str | None:
    duty = agent.open.duty if agent.open else None
    experiment = state.experiments.get(duty.id) if isinstance(duty, Experiment) else None
    if experiment is None or experiment.plan is None:
        return None
    return change_of(experiment.base, experiment.plan.technique, experiment.plan.change)


def _move(groups: dict[str, dict[str, None]], place: dict[str, str], name: str, group: str | None) -> None:
    """Put an agent into one of the groups, or into none of them; ``place`` says where each agent is."""
    before = place.get(name)
    if before == group:
        return
    if before is not None:
        del place[name], groups[before][name]
        if not groups[before]:
            del groups[before]
    if group is not None:
        place[name] = group
        groups.setdefault(group, {})[name] = None


def _file(agents: dict[str, None], name: str, belongs: bool) -> None:
    if belongs:
        agents[name] = None
    else:
        agents.pop(name, None)
