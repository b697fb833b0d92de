"""What a mind is told for one experiment, built from the state of the ledger and from nothing else."""

from bisect import bisect_left
from collections.abc import Iterable
from math import log1p

from protocol.counters import abandoned_in, closed_for, phase_of
from protocol.directions import directed
from protocol.events import InteractsBadly
from protocol.failure_modes import failure_modes_of
from protocol.findings import ranked
from protocol.messages import BadPair, Briefing, Chronicle, Means, PastExperiment, Position, Verdict
from protocol.money import allowance, means_of
from protocol.plateau import untried_lifts
from protocol.profiling import profile_of
from protocol.state import CampaignState, ExperimentState
from protocol.sweep import due_items
from protocol.wire import pack


def briefing_of(state: CampaignState, agent_name: str, base: str, since: int = 0) -> Briefing:
    """The briefing of one agent on one base. ``editable`` is left empty: its agent reads the files from git.

    ``since``: how many of the team's verdicts the agent was told before; they are left out of the history.
    """
    agent, started, claim = state.agents[agent_name], state.started, directed(state, agent_name)
    profile = profile_of(state, agent_name)
    return Briefing(
        agent=agent_name,
        role=agent.member.role,
        number=agent.streaks.experiments,
        task=started.task,
        language=started.language,
        numerics=started.numerics,
        editable={},
        base=base,
        workloads=started.workloads,
        phase=phase_of(state.policy, agent.streaks),
        position=profile.position if profile else Position.UNKNOWN,
        direction=(f"{claim.name}: {claim.about}" if claim.about else claim.name) if claim else "",
        round=state.rounds + 1,
        allowed_categories=claim.allowed if claim else (),
        forbidden_categories=claim.forbidden if claim else (),
        findings=ranked(state, agent_name),
        closed_categories=tuple(sorted(closed_for(state, agent))),
        abandoned=abandoned_in(state, agent),
        search=agent.search,
        advice=started.advice,
        lifts=untried_lifts(state, agent),
        sweep=due_items(state, agent),
        insights=tuple(state.insights),
        warnings=tuple(str(finding) for finding in failure_modes_of(state, agent_name)),
        history=tuple(past_of(state, e) for e in history_of(state, agent_name, since)),
        profile=profile,
        refused=_refused(state, agent_name),
        bad_pairs=tuple(_bad_pair(state, pair) for pair in state.bad_pairs),
        law=state.policy,
        max_variants=state.policy.variants,
        place=agent.place,
        team_size=len(state.agents),
        dollars=allowance(state),
        means=means_of(state, agent_name),
        seed=started.seed + agent.tries + 1000 * agent.place,
    )


def history_of(state: CampaignState, agent: str, since: int) -> list[ExperimentState]:
    """What an agent is told of, in the order of the verdicts: the team's newest experiments and all of its own.

    Only verdicts after the first ``since``; what was lost was not tried.
    """
    newest = _newest(state, since)
    return _told(state, [*_own_before(state, agent, since, newest), *range(newest, len(state.verdicts))])


def _newest(state: CampaignState, since: int) -> int:
    """From which verdict on an agent is told of everybody's."""
    return max(since, len(state.verdicts) - state.policy.briefed)


def _own_before(state: CampaignState, agent: str, since: int, newest: int) -> list[int]:
    """Where the agent's own verdicts stand among those from ``since`` to ``newest``."""
    own = state.index.own.get(agent, [])
    return own[bisect_left(own, since) : bisect_left(own, newest)]


def _told(state: CampaignState, places: Iterable[int]) -> list[ExperimentState]:
    found = (state.experiments[state.verdicts[place]] for place in places)
    return [experiment for experiment in found if experiment.verdict is not Verdict.LOST]


class Told:
    """Past experiments as msgpack, each put into words once, however many minds are told of them."""

    def __init__(self) -> None:
        self._from: int | None = None
        self._words: list[bytes] = []
        """Of the verdicts from ``_from`` on, in order; empty for what was lost."""
        self._own: dict[str, dict[int, bytes]] = {}
        """Agent -> the words of its own verdicts, by their places, until it was told of them: by then they are no
        longer among the newest."""

    def keep_up(self, state: CampaignState) -> None:
        """Put what is new into words, if anybody is told anything: after a snapshot it would have to be unpacked."""
        if self._from is not None:
            self._since(state, len(state.verdicts))

    def history(self, state: CampaignState, agent: str, since: int) -> list[bytes]:
        """``history_of`` in words."""
        newest = _newest(state, since)
        recent = self._since(state, newest)
        own = self._own.pop(agent, {})
        older = (
            own[place] if place in own else _words_of(state, state.verdicts[place])
            for place in _own_before(state, agent, since, newest)
        )
        return [words for words in (*older, *recent) if words]

    def _since(self, state: CampaignState, place: int) -> list[bytes]:
        """The words of the verdicts from ``place`` on, which is among the newest."""
        briefed = state.policy.briefed
        if self._from is None:
            self._from = max(0, len(state.verdicts) - briefed)
        fresh = self._from + len(self._words)
        for number, ident in enumerate(state.verdicts[fresh:], start=fresh):
            words = _words_of(state, ident)
            self._words.append(words)
            self._own.setdefault(state.experiments[ident].agent, {})[number] = words
        if (old := len(self._words) - briefed) > briefed:
            del self._words[:old]
            self._from += old
        return self._words[place - self._from :]


def _words_of(state: CampaignState, ident: str) -> bytes:
    """A judged experiment in words; none for one that was lost."""
    experiment = state.experiments[ident]
    return b"" if experiment.verdict is Verdict.LOST else pack(past_of(state, experiment).model_dump(mode="json"))


def chronicle_of(state: CampaignState) -> Chronicle:
    """What a research duty reads: the record of the whole team, and nothing else."""
    started = state.started
    return Chronicle(
        task=started.task,
        language=started.language,
        numerics=started.numerics,
        floors={device: noise.floor for device, noise in state.noise.items()},
        threshold=log1p(state.policy.threshold),
        history=tuple(past_of(state, e) for e in state.judged if e.verdict is not Verdict.LOST),
        profile=state.main_profile or next((a.profile for a in state.agents.values() if a.profile), None),
        means=next((means_of(state, reader) for reader in state.index.with_open("research")), Means()),
    )


def _refused(state: CampaignState, agent_name: str) -> tuple[str, ...]:
    current = state.agents[agent_name].open
    experiment = state.experiments.get(getattr(current.duty, "id", "")) if current else None
    return tuple(experiment.refused) if experiment else ()


def _bad_pair(state: CampaignState, pair: InteractsBadly) -> BadPair:
    def technique(name: str) -> str:
        plan = state.experiments[name].plan
        return plan.technique if plan else ""

    others = {name: technique(name) for name in pair.others}
    return BadPair(experiment=pair.experiment, technique=technique(pair.experiment), others=others, why=pair.why)


def past_of(state: CampaignState, experiment: ExperimentState) -> PastExperiment:
    """One experiment with its verdict, as every mind may see it."""
    assert experiment.plan is not None
    assert experiment.verdict is not None
    overall = experiment.overall
    return PastExperiment(
        id=experiment.id,
        agent=experiment.agent,
        role=state.agents[experiment.agent].member.role,
        plan=experiment.plan,
        parameters=experiment.parameters,
        verdict=experiment.verdict,
        reason=experiment.reason,
        gain=overall.gain if overall else None,
        low=overall.low if overall else None,
        high=overall.high if overall else None,
        base=experiment.base,
        commit=experiment.commit,
        screened=experiment.screened,
    )
