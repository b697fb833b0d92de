"""``kernelteam status``: where a campaign stands, as a JSON-ready dict with stable keys. Rendering: ``status_view``."""

import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

from protocol.archive import Absent
from protocol.counters import phase_of
from protocol.directions import current
from protocol.duties import spent_experiments
from protocol.messages import DeviceInfo, Estimate, Experiment, Verdict
from protocol.state import AgentState, CampaignState, LandingState
from team.report import wording as w
from team.report.levels import main_speedup
from team.report.reading import coordinator_pid, glance_at, read_state
from team.report.setup import blocks

Status = dict[str, Any]


def status(run_dir: Path) -> Status:
    """Where the campaign in ``run_dir`` stands now, keys as in ``status_of``; ``UserError`` when there is none."""
    pid, now = coordinator_pid(run_dir), time.time()
    try:
        return status_of(glance_at(run_dir), pid, now)
    except Absent:
        return status_of(read_state(run_dir), pid, now)


def status_of(state: CampaignState, pid: int | None, now: float) -> Status:
    """The same from a state. ``pid``: the living coordinator's, None when it is dead; ``now``: seconds since 1970.

    Keys, all always there; a value that is not known yet is None, "" or empty:

    - ``campaign``, ``task``, ``operator``, ``repository``: text; ``baseline``, ``main``: commits
    - ``state``: starting, running, paused, stopping, wrapping up, finished or dead; ``why``: one sentence for it
    - ``coordinator_pid``: int or None; ``started``: seconds since 1970; ``elapsed_s``: seconds, without idle time
    - ``budget``: ``experiments``, ``minutes``, ``dollars``, ``tokens``, ``calls``, each ``{used, limit, left}`` (limit
      and left may be None)
    - ``speedup``: ``{speedup, low, high, gain, how, device, text}`` of main over the baseline, as plain ratios
      (``gain`` is its natural log); ``how``: measured, landed, "measured and landed" or baseline
    - ``target``: the speedup that ends the search early, or None
    - ``agents``: one each ``{name, role, mind, device, kind, device_name, alive, duty, subject, duty_s, experiments,
      kept, phase, owes}``; ``owes``: list of "search", "profile", "recheck"; ``duty`` is "" for an agent that has none
    - ``experiments``: ``{total, judged, kept, landed, running}``; ``verdicts``: verdict -> count
    - ``landing``: queue of ``{experiment, number, agent, stage, candidate}``; stage: queued, verifying or measured
    - ``noise``: device -> ``{floor, restart_sd, pair_sd, threshold}``, log gains
    - ``round``: the one that runs, 0 after the team phase; ``outcome``: of the last one, "" before; ``team_over``: why
      there are no more rounds, or ""; ``notes_failed``: why the notes are behind, or ""
    - ``proposal``: why submission is proposed, or ""
    - ``setup``: title -> list of ``[name, text]``, the blocks of phase A: operator, hardware, scope, known broken
    - ``rounds``, ``searches``: counts; ``abandoned``: techniques; ``dollars``: spent; ``submitted``: branch or ""
    """
    name, why = _standing(state, pid)
    start = state.start
    return {
        "campaign": start.campaign if start else "",
        "task": start.task if start else "",
        "operator": start.operator if start else "",
        "repository": start.repository if start else "",
        "baseline": start.commit if start else "",
        "main": state.main,
        "state": name,
        "why": why,
        "coordinator_pid": pid,
        "started": state.first_time,
        "elapsed_s": elapsed_of(state, pid, now),
        "budget": _budget(state, elapsed_of(state, pid, now)),
        "speedup": _speedup(state),
        "target": start.policy.target_speedup if start else None,
        "agents": _agents(state, pid is not None, now),
        "experiments": _experiments(state),
        "verdicts": _verdicts(state),
        "landing": [_landing(state, landing) for landing in state.landings.values()],
        "noise": _noise(state),
        "round": 0 if state.team_over else state.rounds + 1,
        "outcome": state.round_log[-1].outcome if state.round_log else "",
        "team_over": state.team_over,
        "notes_failed": state.notes_failed,
        "rounds": state.rounds,
        "searches": len(state.searches),
        "proposal": state.proposed,
        "setup": {title: [list(row) for row in rows] for title, rows in blocks(start).items()} if start else {},
        "abandoned": [f"{name} ({where})" if where else name for name, where in state.abandoned],
        "dollars": state.dollars,
        "submitted": state.submitted.branch if state.submitted else "",
    }


def _standing(state: CampaignState, pid: int | None) -> tuple[str, str]:
    if state.baseline_refused:
        return "finished", f"no campaign: {state.baseline_refused}"
    if state.finished:
        return "finished", state.finished
    if pid is None:
        return "dead", "its coordinator does not live; go on with: kernelteam resume"
    if state.stop:
        return "stopping", state.stop
    if state.wrap_up:
        return "wrapping up", f"{state.wrap_up}; what runs is finished, and then main is submitted"
    if state.paused:
        return "paused", f"{state.paused}; go on with: kernelteam resume"
    return ("running", "") if state.baselines else ("starting", "no baseline yet")


def elapsed_of(state: CampaignState, pid: int | None, now: float) -> float:
    """Seconds that the campaign has run, idle time between stop and resume left out."""
    if not state.first_time:
        return 0.0
    until = now if pid is not None and not state.finished else state.last_time
    return max(0.0, until - state.first_time - state.idle_time - state.paused_for(until))


def _budget(state: CampaignState, elapsed_s: float) -> Status:
    policy = state.start.policy if state.start else None
    return {
        "experiments": _limit(spent_experiments(state), policy.max_experiments if policy else None),
        "minutes": _limit(elapsed_s / 60.0, policy.max_minutes if policy else None),
        "dollars": _limit(state.dollars, policy.max_dollars if policy else None),
        "tokens": _limit(state.tokens, policy.max_tokens if policy else None),
        "calls": _limit(state.calls, policy.max_calls if policy else None),
    }


def _limit(used: float, limit: float | None) -> Status:
    return {"used": used, "limit": limit, "left": None if limit is None else max(0.0, limit - used)}


def _speedup(state: CampaignState) -> Status:
    main = main_speedup(state)
    return {**ratios(main.estimate), "how": main.how, "device": main.device, "text": w.interval(main.estimate)}


def ratios(estimate: Estimate) -> Status:
    """An estimate as plain ratios, its log gain beside them."""
    low, high = w.ratio(estimate.low), w.ratio(estimate.high)
    return {"speedup": w.ratio(estimate.gain), "low": low, "high": high, "gain": estimate.gain}


def _agents(state: CampaignState, coordinated: bool, now: float) -> list[Status]:
    return [
        _agent(state, agent, coordinated, now) | _tried(state.index.tally.get(name, {}))
        for name, agent in state.agents.items()
    ]


_KEPT = frozenset(verdict.value for verdict in Verdict if verdict.kept)


def _tried(tally: dict[str, int]) -> Status:
    return {"experiments": sum(tally.values()), "kept": sum(n for word, n in tally.items() if word in _KEPT)}


def _verdicts(state: CampaignState) -> dict[str, int]:
    """Verdict -> how many, in the order of the verdicts' table."""
    total: Counter[str] = Counter()
    for tally in state.index.tally.values():
        total.update(tally)
    return {verdict.value: total[verdict.value] for verdict in Verdict if total[verdict.value]}


def _agent(state: CampaignState, agent: AgentState, coordinated: bool, now: float) -> Status:
    duty = agent.open if agent.alive and coordinated else None
    return {
        "name": agent.member.name,
        "role": agent.member.role.value,
        "mind": agent.member.mind,
        "device": agent.member.device,
        **_hardware(agent.device),
        "alive": agent.alive and coordinated,
        "duty": duty.duty.kind if duty else "",
        "subject": _subject(state, agent) if duty else "",
        "duty_s": max(0.0, now - duty.since) if duty else 0.0,
        "phase": phase_of(state.policy, agent.streaks).value,
        **_direction(state, agent.member.name),
        "owes": _owes(agent),
    }


def _hardware(device: DeviceInfo | None) -> Status:
    return {"kind": device.kind if device else "", "device_name": device.name if device else ""}


def _subject(state: CampaignState, agent: AgentState) -> str:
    """What an agent's duty is about: number and technique of its experiment, or a commit."""
    duty = agent.open.duty if agent.open else None
    if isinstance(duty, Experiment):
        experiment = state.experiments.get(duty.id)
        plan = experiment.plan if experiment else None
        return f"#{experiment.number} {plan.technique}" if experiment and plan else "planning"
    commit = getattr(duty, "commit", "") or getattr(duty, "candidate", "")
    return w.short_commit(commit)


def _direction(state: CampaignState, agent: str) -> Status:
    mine = current(state, agent)
    claim = mine.claim if mine else None
    seconded = claim.owner if claim and claim.owner != agent else ""
    return {
        "direction": claim.name if claim else "",
        "categories": list(claim.allowed if claim else ()),
        "seconds": seconded,
    }


def _owes(agent: AgentState) -> list[str]:
    owed = {"search": agent.owes_search, "profile": agent.owes_profile, "recheck": agent.owes_rechecks}
    return [name for name, owes in owed.items() if owes]


def _experiments(state: CampaignState) -> Status:
    judged = len(state.verdicts)
    return {
        "total": len(state.experiments),
        "judged": judged,
        "kept": sum(_tried(tally)["kept"] for tally in state.index.tally.values()),
        "landed": len(state.landed),
        "running": len(state.experiments) - judged,
    }


def _landing(state: CampaignState, landing: LandingState) -> Status:
    waiting = "resolving" if landing.conflict and landing.resolution is None else "queued"
    stage = "measured" if landing.measured else "verifying" if landing.candidate else waiting
    return {
        "experiment": landing.experiment,
        "number": state.experiments[landing.experiment].number,
        "agent": landing.agent,
        "stage": stage,
        "candidate": landing.candidate,
    }


def _noise(state: CampaignState) -> Status:
    return {
        device: {
            "floor": noise.floor,
            "restart_sd": noise.restart_sd,
            "pair_sd": noise.pair_sd,
            "threshold": max(math.log1p(state.policy.threshold), noise.floor),
        }
        for device, noise in state.noise.items()
    }
