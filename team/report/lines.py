"""One line per event, for whoever watches a campaign or reads its log. Plain ASCII; ``styled`` adds colours."""

from collections.abc import Callable
from typing import Any

from rich.text import Text

from protocol import events as ev
from protocol.accuracy import near_tolerance
from protocol.messages import Position, Verdict
from protocol.state import CampaignState, ExperimentState
from protocol.submission import name_of
from team.report import wording as w
from team.report.levels import main_speedup
from team.report.reading import device_of

Segment = tuple[str, str]
"""A piece of a line and its rich style."""

VERDICT_STYLE = {
    Verdict.KEEP: "bold green",
    Verdict.KEEP_SIMPLER: "green",
    Verdict.REVERT: "yellow",
    Verdict.UNRESOLVED: "yellow",
    Verdict.LOST: "magenta",
}
FAILURE_STYLE = "red"
_MAX_NAME = 14
_ROOM = 36


def line(event: ev.Event, state: CampaignState, width: int | None = None) -> str | None:
    """What a user should see of this event, or None. ``state`` is the state *after* it; ``width`` in characters."""
    segments = segments_of(event, state, width)
    return None if segments is None else "".join(text for text, _ in segments).rstrip()


def styled(event: ev.Event, state: CampaignState, width: int | None = None) -> Text | None:
    """The same line with colours for a terminal."""
    segments = segments_of(event, state, width)
    return None if segments is None else Text.assemble(*segments, no_wrap=True, overflow="ellipsis")


def segments_of(event: ev.Event, state: CampaignState, width: int | None) -> list[Segment] | None:
    """The line in pieces, the last one cut so that all fit into ``width``; None when the event is not shown."""
    teller = _TELLERS.get(type(event.body))
    said = teller(state, event, event.body) if teller else None
    if said is None:
        return None
    clock = w.duration(event.time - state.first_time) if state.first_time else ""
    return _fitted([(f"{clock:>8}  ", "dim"), *said], width)


def _fitted(segments: list[Segment], width: int | None) -> list[Segment]:
    """Cut the last piece to the width; where it has no room, give up the alignment of columns first."""
    if width is None:
        return segments
    if _length(segments[:-1]) + _ROOM > width:
        segments = [(f"{' '.join(text.split())} ", style) for text, style in segments]
    text, style = segments[-1]
    return [*segments[:-1], (w.cut(text, max(0, width - _length(segments[:-1]))), style)]


def _length(segments: list[Segment]) -> int:
    return sum(len(text) for text, _ in segments)


def number_of(experiment: ExperimentState) -> str:
    """``#7``; numbers are given when a plan is admitted."""
    return f"#{experiment.number}"


def idea_of(experiment: ExperimentState) -> str:
    """Technique and parameters, ``tile-loops (tile=64)``."""
    if experiment.plan is None:
        return "no plan yet"
    values = w.plain(w.parameters(experiment.parameters))
    return w.plain(experiment.plan.technique) + (f" ({values})" if values else "")


def verdict_style(verdict: Verdict | None) -> str:
    """The rich style of a verdict."""
    return VERDICT_STYLE.get(verdict, FAILURE_STYLE) if verdict is not None else "dim"


def _columns(state: CampaignState, agent: str, device: str) -> str:
    names = min(_MAX_NAME, max((len(w.plain(name)) for name in state.agents), default=0))
    devices = max((len(w.short_device(a.member.device)) for a in state.agents.values()), default=0)
    return f"{w.cut(w.plain(agent), _MAX_NAME):<{names}}  {w.short_device(device):<{devices}}  "


def _judged(state: CampaignState, event: ev.Event, body: ev.ExperimentJudged) -> list[Segment] | None:
    experiment = state.experiments.get(body.experiment)
    if experiment is None:
        return None
    device = device_of(experiment.measurement, state.agents[experiment.agent].member.device)
    return [
        (f"{number_of(experiment):<4}  ", "bold"),
        (_columns(state, experiment.agent, device), "cyan"),
        (f"{body.verdict.value:<12}  ", verdict_style(body.verdict)),
        (f"{w.interval(experiment.overall):<24}  ", "bold" if body.verdict.kept else ""),
        (f"{w.dollars(state.dollars)}  ", "dim"),
        (f"{idea_of(experiment)}: {_nearly_wrong(state, experiment)}{w.plain(body.reason)}", ""),
    ]


def _nearly_wrong(state: CampaignState, experiment: ExperimentState) -> str:
    """What a kept experiment's error is, when that is near the tolerance; else empty."""
    said = near_tolerance(experiment, state.policy) if experiment.verdict and experiment.verdict.kept else ""
    return f"{w.plain(said)}; " if said else ""


def _note(tag: str, style: str, text: str) -> list[Segment]:
    return [(f"{tag:<9} ", style), (w.plain(text), "")]


def _tag(state: CampaignState, experiment: str) -> str:
    known = state.experiments.get(experiment)
    return number_of(known) if known and known.number else ""


def _campaign_started(state: CampaignState, event: ev.Event, body: ev.CampaignStarted) -> list[Segment]:
    limits = (
        (body.policy.max_experiments, "experiments"),
        (body.policy.max_minutes, "minutes"),
        (body.policy.max_dollars, "dollars"),
        (body.policy.max_tokens, "tokens"),
        (body.policy.max_calls, "calls of models"),
    )
    budget = ", ".join(f"{limit:g} {unit}" for limit, unit in limits if limit is not None) or "no limit"
    team = ", ".join(f"{m.name} ({m.role.value}, {m.mind})" for m in body.members)
    return _note("campaign", "bold", f"{body.campaign} on task {body.task}; team {team}; budget {budget}")


def _agent_joined(state: CampaignState, event: ev.Event, body: ev.AgentJoined) -> list[Segment]:
    return _note("joined", "cyan", f"{event.agent} on {w.short_device(body.device.id)} ({body.device.name})")


def _agent_lost(state: CampaignState, event: ev.Event, body: ev.AgentLost) -> list[Segment]:
    return _note("lost", "magenta", f"{event.agent}: {body.why}")


def _baseline_measured(state: CampaignState, event: ev.Event, body: ev.BaselineMeasured) -> list[Segment]:
    times = ", ".join(f"{name} {w.nanoseconds(ns)}" for name, ns in body.baseline_ns.items())
    planted = f"planted gain {'found' if body.planted_found else 'MISSED'} as {w.interval(body.planted)}"
    null = "A/A found a gain that is not there" if body.null_kept else "A/A found nothing"
    floor = f"noise floor {w.percent(body.noise.floor)}"
    return _note("baseline", "bold", f"{w.short_device(body.device)}: {floor}; {null}; {planted}; {times}")


def _baseline_refused(state: CampaignState, event: ev.Event, body: ev.BaselineRefused) -> list[Segment]:
    return _note("baseline", "bold red", f"refused: {body.why}")


def _plan_refused(state: CampaignState, event: ev.Event, body: ev.PlanRefused) -> list[Segment]:
    return _note("no plan", "yellow", f"{event.agent}: {body.plan.technique} refused: {body.why}")


def _duty_failed(state: CampaignState, event: ev.Event, body: ev.DutyFailed) -> list[Segment]:
    return _note("failed", "yellow", f"{event.agent}: {body.why}")


def _nothing_proposed(state: CampaignState, event: ev.Event, body: ev.NothingProposed) -> list[Segment]:
    return _note("no idea", "yellow", f"{event.agent}: {body.why}")


def _search_reported(state: CampaignState, event: ev.Event, body: ev.SearchReported) -> list[Segment]:
    found = body.report
    sources = f"{len(found.sources)} source{'s' if len(found.sources) != 1 else ''}"
    what = f"chose {found.technique} ({found.category}) from {sources}: {found.why}"
    return _note("search", "blue", f"{event.agent} {what}")


def _profile_reported(state: CampaignState, event: ev.Event, body: ev.ProfileReported) -> list[Segment]:
    seen = body.report
    known = seen.position is not Position.UNKNOWN
    what = f"{w.short_commit(seen.commit)} " + (f"is {seen.position.value}-bound" if known else "profiled")
    figures = ", ".join(f"{name} {value:g}" for name, value in list(seen.metrics.items())[:3])
    return _note("profile", "blue", f"{event.agent}: {what} by {seen.tool}" + (f": {figures}" if figures else ""))


def _landing_conflicted(state: CampaignState, event: ev.Event, body: ev.LandingConflicted) -> list[Segment]:
    return _note("conflict", "yellow", f"{_tag(state, body.experiment)} with main in {', '.join(body.files)}")


def _merge_resolved(state: CampaignState, event: ev.Event, body: ev.MergeResolved) -> list[Segment]:
    word = "resolved" if body.commit else "could not resolve"
    return _note("merge", "blue", f"{event.agent} {word} {_tag(state, body.experiment)}: {body.why}")


def _interacts_badly(state: CampaignState, event: ev.Event, body: ev.InteractsBadly) -> list[Segment]:
    others = ", ".join(_tag(state, other) for other in body.others)
    return _note("bad pair", "yellow", f"{_tag(state, body.experiment)} with {others}: {body.why}")


def _mended(state: CampaignState, event: ev.Event, body: ev.Mended) -> list[Segment]:
    return _note("mended", "bold yellow", " ".join(body.what))


def _recheck_reported(state: CampaignState, event: ev.Event, body: ev.RecheckReported) -> list[Segment]:
    checked = body.report
    fits = sum(one.holds for one in checked.compared)
    word = f"stays open: {checked.suspect}" if checked.suspect else "is closed: nothing else explains it"
    return _note(
        "re-check", "blue", f"{checked.technique}: {fits} of {len(checked.compared)} points of its card hold; it {word}"
    )


def _research_reported(state: CampaignState, event: ev.Event, body: ev.ResearchReported) -> list[Segment]:
    found = body.report.insights
    return _note("research", "blue", f"{event.agent}: {'; '.join(one.what for one in found)}")


def _team_stuck(state: CampaignState, event: ev.Event, body: ev.TeamStuck) -> list[Segment]:
    times = f", {body.times} times in a row" if body.times > 1 else ""
    return _note("stuck", "yellow", f"every agent is stuck at once{times}: each owes a search and starts afresh")


def _submission_proposed(state: CampaignState, event: ev.Event, body: ev.SubmissionProposed) -> list[Segment]:
    return _note("proposal", "bold yellow", f"submit now? {body.why}")


def _landed(state: CampaignState, event: ev.Event, body: ev.Landed) -> list[Segment]:
    main = w.speedup(w.ratio(main_speedup(state).estimate.gain))
    how = "" if body.how == "cherry-pick" else f" ({body.how})"
    what = f"{_tag(state, body.experiment)} as {w.short_commit(body.commit)}{how}, verified {w.interval(body.gain)}"
    return _note("landed", "bold green", f"{what}; main is {main} over the baseline")


def _landing_refused(state: CampaignState, event: ev.Event, body: ev.LandingRefused) -> list[Segment]:
    return _note("no land", "yellow", f"{_tag(state, body.experiment)}: {body.why}")


def _main_measured(state: CampaignState, event: ev.Event, body: ev.MainMeasured) -> list[Segment]:
    word = "agrees" if body.agrees else "DISAGREES"
    if not body.compared:
        word = "was measured on other SKUs and is not compared"
    product = f"product of landings {w.speedup(w.ratio(body.product))} {word}"
    against = f"against {w.short_commit(body.base)} on {w.short_device(body.device)}"
    return _note("main", "bold", f"{w.short_commit(body.commit)} {w.interval(body.estimate)} {against}; {product}")


def _method_ablated(state: CampaignState, event: ev.Event, body: ev.MethodAblated) -> list[Segment]:
    word = body.ablation.contribution.value.replace("_", " ")
    sass = f"machine code: {body.sass.status.value.replace('_', ' ')}"
    return _note("ablation", "", f"{_tag(state, body.experiment)} {word} ({body.ablation.why}); {sass}")


def _direction_claimed(state: CampaignState, event: ev.Event, body: ev.DirectionClaimed) -> list[Segment]:
    claim = body.direction
    return _note("direction", "cyan", f"{event.agent} takes {claim.name} ({', '.join(claim.allowed)})")


def _direction_seconded(state: CampaignState, event: ev.Event, body: ev.DirectionSeconded) -> list[Segment]:
    claim = state.directions[body.direction].claim
    return _note("direction", "cyan", f"{event.agent} seconds {claim.owner} in {claim.name}: {body.why}")


def _direction_closed(state: CampaignState, event: ev.Event, body: ev.DirectionClosed) -> list[Segment]:
    claim = state.directions[body.direction].claim
    return _note("direction", "cyan", f"{claim.owner}'s {claim.name} {body.standing.value}: {body.why}")


def _direction_proposed(state: CampaignState, event: ev.Event, body: ev.DirectionProposed) -> list[Segment]:
    answer = f"refused: {body.refused}" if body.refused else "accepted"
    return _note("direction", "cyan", f"'{body.name}' proposed for {event.agent} by {body.source}: {answer}")


def _team_phase_ended(state: CampaignState, event: ev.Event, body: ev.TeamPhaseEnded) -> list[Segment]:
    return _note("team", "bold", f"the team phase ends: {body.why}; everybody goes on by itself on main")


def _round_ended(state: CampaignState, event: ev.Event, body: ev.RoundEnded) -> list[Segment]:
    return _note(f"round {body.number}", "bold", "; ".join(body.recap) or "ended")


def _notes_failed(state: CampaignState, event: ev.Event, body: ev.NotesFailed) -> list[Segment]:
    return _note("notes", "yellow", f"not written, tried again: {body.why}")


def _stop_requested(state: CampaignState, event: ev.Event, body: ev.StopRequested) -> list[Segment]:
    return _note("stopping", "bold yellow", body.why)


def _paused(state: CampaignState, event: ev.Event, body: ev.Paused) -> list[Segment]:
    return _note("paused", "bold yellow", f"{body.why}; what runs is finished")


def _pause_ended(state: CampaignState, event: ev.Event, body: ev.PauseEnded) -> list[Segment]:
    return _note("goes on", "bold", body.why)


def _wrap_up_requested(state: CampaignState, event: ev.Event, body: ev.WrapUpRequested) -> list[Segment]:
    return _note("wrap-up", "bold yellow", f"{body.why}; what runs is finished, and then main is submitted")


def _resumed(state: CampaignState, event: ev.Event, body: ev.Resumed) -> list[Segment]:
    return _note(
        "resumed", "bold", f"in flight and lost: {', '.join(body.lost)}" if body.lost else "nothing was in flight"
    )


def _finished(state: CampaignState, event: ev.Event, body: ev.Finished) -> list[Segment]:
    main = f"main {w.short_commit(state.main)} {w.interval(main_speedup(state).estimate)}"
    return _note("finished", "bold", f"{body.why}; {main}; {w.dollars(state.dollars)}")


def _submission_started(state: CampaignState, event: ev.Event, body: ev.SubmissionStarted) -> list[Segment]:
    what = f"{w.short_commit(body.evaluated)} as {name_of(body.tag, body.version)}: judged in a clean clone"
    return _note("submit", "bold", f"{what} on {w.short_device(body.device)}")


def _submission_measured(state: CampaignState, event: ev.Event, body: ev.SubmissionMeasured) -> list[Segment]:
    return _note("submit", "", f"run {body.run}: all workloads correct, {w.interval(body.estimate)}")


def _submission_refused(state: CampaignState, event: ev.Event, body: ev.SubmissionRefused) -> list[Segment]:
    return _note("submit", "bold red", f"refused: {body.why}")


def _pushed(state: CampaignState, event: ev.Event, body: ev.Pushed) -> list[Segment]:
    return _note("pushed", "bold green", f"{body.name} to {body.remote}")


def _submitted(state: CampaignState, event: ev.Event, body: ev.Submitted) -> list[Segment]:
    return _note("submitted", "bold green", f"{w.short_commit(body.commit)} as branch {body.branch}")


_TELLERS: dict[type[ev.Body], Callable[[CampaignState, ev.Event, Any], list[Segment] | None]] = {
    ev.CampaignStarted: _campaign_started,
    ev.AgentJoined: _agent_joined,
    ev.AgentLost: _agent_lost,
    ev.BaselineMeasured: _baseline_measured,
    ev.BaselineRefused: _baseline_refused,
    ev.PlanRefused: _plan_refused,
    ev.NothingProposed: _nothing_proposed,
    ev.DutyFailed: _duty_failed,
    ev.ExperimentJudged: _judged,
    ev.SearchReported: _search_reported,
    ev.ProfileReported: _profile_reported,
    ev.LandingConflicted: _landing_conflicted,
    ev.MergeResolved: _merge_resolved,
    ev.InteractsBadly: _interacts_badly,
    ev.Mended: _mended,
    ev.RecheckReported: _recheck_reported,
    ev.ResearchReported: _research_reported,
    ev.TeamStuck: _team_stuck,
    ev.SubmissionProposed: _submission_proposed,
    ev.Landed: _landed,
    ev.LandingRefused: _landing_refused,
    ev.MainMeasured: _main_measured,
    ev.MethodAblated: _method_ablated,
    ev.DirectionClaimed: _direction_claimed,
    ev.DirectionSeconded: _direction_seconded,
    ev.DirectionClosed: _direction_closed,
    ev.DirectionProposed: _direction_proposed,
    ev.RoundEnded: _round_ended,
    ev.TeamPhaseEnded: _team_phase_ended,
    ev.NotesFailed: _notes_failed,
    ev.StopRequested: _stop_requested,
    ev.Paused: _paused,
    ev.PauseEnded: _pause_ended,
    ev.WrapUpRequested: _wrap_up_requested,
    ev.Resumed: _resumed,
    ev.Finished: _finished,
    ev.SubmissionStarted: _submission_started,
    ev.SubmissionMeasured: _submission_measured,
    ev.SubmissionRefused: _submission_refused,
    ev.Submitted: _submitted,
    ev.Pushed: _pushed,
}
