"""Rounds: the planning horizon. When one ends, what its recap says, and which of the four outcomes of RULES it has.

A  one agent won: the others move to what it won.
B  several won: their wins land one after the other, each measured on the merged tree, and everybody goes on from main.
C  nobody won: every agent searches, and the directions are dealt afresh.
D  one agent won by little while another's direction is open, which means that it has not had its tries yet: that agent
   keeps its base for one more round, and once only. Beside several small wins it keeps it as well.

A win is a KEEP that is on main or on its way there. The team phase ends when rounds bring nothing more or one agent
brings everything; then there are no rounds and claims any more, and every agent spends what is left of the budget by
itself on main, which holds the winner: RULES ends a campaign early for other reasons only.
"""

from __future__ import annotations

from math import exp, expm1, log1p
from typing import TYPE_CHECKING, Literal

from protocol import events as ev
from protocol import failure_modes, stuck
from protocol.messages import Standing, Verdict

if TYPE_CHECKING:
    from protocol.directions import Entries
    from protocol.record import CampaignState, DirectionState, ExperimentState

Outcome = Literal["A", "B", "C", "D"]
_PAIR = 2


def round_is_over(state: CampaignState, now: float) -> bool:
    """True when the team has judged a round's worth of experiments, or one at least in a round's time."""
    if state.team_over:
        return False
    judged = len(state.verdicts) - state.round_from
    if judged >= state.policy.round_experiments * max(_PAIR, len(state.agents)) / _PAIR:
        return True
    idle = state.idle_time - state.round_idle
    return judged > 0 and now - state.round_began - idle >= 60.0 * state.policy.round_minutes


def end(state: CampaignState, stuck_at_once: bool = False) -> Entries:
    """The events that end the round: what becomes of each direction, and the round's outcome.

    ``stuck_at_once``: it is cut short for fresh directions, because every agent was stuck.
    """
    wins = _wins(state)
    stay = _keeping(state, wins)
    outcome = _outcome(wins, stay)
    closings = [_closing(state, direction, outcome, stay) for direction in _open(state)]
    ended = ev.RoundEnded(
        number=state.rounds + 1,
        recap=(*recap(state), _sentence(state, outcome, wins, stay)),
        outcome=outcome,
        winners=tuple(wins),
        best=max(wins.values(), default=0.0),
        keeps_base={name: state.head_of(name) for name in stay},
        searches=tuple(_searchers(state)) if outcome == "C" else (),
        stuck=stuck_at_once,
    )
    return [*closings, ("", ended)]


def _wins(state: CampaignState) -> dict[str, float]:
    """Agents with a win in this round, each with the log gain of its best."""
    wins: dict[str, float] = {}
    for experiment in _fresh(state):
        if experiment.verdict is Verdict.KEEP and experiment.overall and not experiment.landing.startswith("refused"):
            wins[experiment.agent] = max(wins.get(experiment.agent, 0.0), experiment.overall.gain)
    return wins


def _outcome(wins: dict[str, float], stay: list[str]) -> Outcome:
    if not wins:
        return "C"
    if len(wins) > 1:
        return "B"
    return "D" if stay else "A"


def _keeping(state: CampaignState, wins: dict[str, float]) -> list[str]:
    """Agents that keep their base for one more round: their directions are undecided, and no win is one-sided."""
    best = max(wins.values(), default=0.0)
    if not wins or best >= log1p(state.policy.one_sided_gain):
        return []
    return [d.claim.owner for d in _open(state) if d.claim.owner not in wins and _undecided(state, d)]


def _undecided(state: CampaignState, direction: DirectionState) -> bool:
    """Open without a KEEP, short of its tries, and not gone on with for that reason before."""
    before = state.directions.get(direction.claim.follows)
    again = before is not None and before.standing is not Standing.WON
    return not direction.keeps and direction.tries < state.policy.direction_tries and not again


def _closing(
    state: CampaignState, direction: DirectionState, outcome: Outcome, stay: list[str]
) -> tuple[str, ev.AnyBody]:
    owner, tries = direction.claim.owner, direction.tries
    if direction.keeps:
        standing, why, goes_on = Standing.WON, f"{direction.keeps} of {tries} experiments were faster", True
    elif tries == 0 or (outcome != "C" and _undecided(state, direction)):
        where = "on its own base" if owner in stay else "on main"
        standing, why, goes_on = Standing.CLOSED, f"undecided after {tries} experiments; goes on {where}", True
    else:
        standing, why, goes_on = Standing.FAILED, f"{tries} experiments, none faster", False
    closed = ev.DirectionClosed(direction=direction.claim.id, standing=standing, why=why, goes_on=goes_on)
    return owner, closed


def _open(state: CampaignState) -> list[DirectionState]:
    return [state.directions[ident] for ident in dict.fromkeys(state.claims.values())]


def _searchers(state: CampaignState) -> list[str]:
    """Whoever is there and neither owes a search nor has one that it did not use yet."""
    return [n for n, a in state.agents.items() if a.alive and not a.owes_search and a.search is None]


# ---------------------------------------------------------------- the recap


def recap(state: CampaignState) -> tuple[str, ...]:
    """One line per agent on the experiments of the round that is ending."""
    fresh: dict[str, list[ExperimentState]] = {name: [] for name in state.agents}
    for experiment in _fresh(state):
        fresh[experiment.agent].append(experiment)
    agents = (_line(name, experiments) for name, experiments in fresh.items())
    return (*agents, *failure_modes.lines(state), *stuck.lines(state))


def _fresh(state: CampaignState) -> list[ExperimentState]:
    return [state.experiments[id_] for id_ in state.verdicts[state.round_from :]]


def _line(name: str, experiments: list[ExperimentState]) -> str:
    kept = [e for e in experiments if e.verdict is not None and e.verdict.kept]
    lost = sum(e.verdict is Verdict.LOST for e in experiments)
    gain = exp(sum(e.overall.gain for e in kept if e.overall))
    tail = f", {lost} lost" if lost else ""
    return f"{name}: {len(experiments)} experiments, {len(kept)} kept (together {gain:.3f}x){tail}"


def _sentence(state: CampaignState, outcome: Outcome, wins: dict[str, float], stay: list[str]) -> str:
    """The outcome in words."""
    winners = ", ".join(f"{name} ({exp(gain):.3f}x)" for name, gain in wins.items())
    if outcome == "C":
        return "outcome C: nobody won; everybody searches, and directions are dealt afresh"
    kept = f"; {', '.join(stay)} keeps its base for one more round" if stay else ""
    if outcome == "B":
        return f"outcome B: {winners} won; their wins land one after the other{kept}"
    return f"outcome {outcome}: {winners} won{kept or '; the others move to it'}"


# ---------------------------------------------------------------- the end of the team phase


def team_phase_is_over(state: CampaignState) -> str:
    """Why there are no more rounds, in one sentence; empty while there are."""
    if state.team_over:
        return ""
    whole = [one for one in state.round_log if not one.stuck]  # a round cut short says nothing of a whole one
    dry = whole[-state.policy.dry_rounds :]
    if len(dry) == state.policy.dry_rounds and all(expm1(one.best) <= state.policy.dry_gain for one in dry):
        return f"{len(dry)} rounds in a row without a KEEP above {state.policy.dry_gain:.0%}"
    last = state.round_log[-state.policy.clear_winner_rounds :]
    alone = {one.winners for one in last}
    if len(last) == state.policy.clear_winner_rounds and len(alone) == 1 and len(last[0].winners) == 1:
        return f"{last[0].winners[0]} is the clear winner: it alone won {len(last)} rounds in a row"
    return ""


def end_team_phase(state: CampaignState, why: str) -> Entries:
    """The events that end the team phase; nothing when it is over."""
    if state.team_over:
        return []
    closings: Entries = [
        (d.claim.owner, ev.DirectionClosed(direction=d.claim.id, standing=_last(d), why="the team phase ended"))
        for d in _open(state)
    ]
    branches = {name: agent.tip or state.started.commit for name, agent in state.agents.items()}
    return [*closings, ("", ev.TeamPhaseEnded(why=why, branches=branches))]


def _last(direction: DirectionState) -> Standing:
    return Standing.WON if direction.keeps else Standing.CLOSED


def tags(state: CampaignState) -> dict[str, str]:
    """Tags of the campaign so far: main at the beginning of each round, and, once the team phase or the campaign is
    over, every agent's branch, so that it can be revived."""
    named = {f"team-baseline-r{number}": commit for number, commit in enumerate(state.round_mains, 1)}
    tips = {name: agent.tip for name, agent in state.agents.items() if agent.tip} if state.finished else {}
    return named | {f"team-end-{name}-{tip[:10]}": tip for name, tip in (state.branches | tips).items()}
