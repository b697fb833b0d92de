"""A person's word to a campaign, each as a request that is left for it, and what comes of it in a sentence."""

from protocol.events import DirectionProposed
from protocol.steering import Request, answer, name_of, objection
from team.errors import UserError
from team.launch import state_of
from team.runs import Run

_BY_HAND = "from the command line"


def stop(run: Run) -> str:
    """Drain and end."""
    _require_driven(run, "stop")
    run.inbox.leave(Request(kind="stop", why=f"stopped {_BY_HAND}"))
    return f"Campaign {run.name} is asked to stop; see it drain with: kernelteam status"


def pause(run: Run) -> str:
    """Hand out no duty until ``unpause``."""
    _require_driven(run, "pause")
    run.inbox.leave(Request(kind="pause", why=f"paused {_BY_HAND}"))
    return f"Campaign {run.name} is asked to pause: what runs is finished first. Go on with: kernelteam resume"


def unpause(run: Run) -> str:
    """Let a paused campaign that runs go on; ``UserError`` when it is not paused."""
    waiting = [request.kind for _, request in run.inbox.waiting()]
    if not state_of(run).paused and "pause" not in waiting:
        raise UserError(f"Campaign {run.name} is running and not paused.", "See it with: kernelteam status")
    run.inbox.leave(Request(kind="resume", why=f"resumed {_BY_HAND}"))
    return f"Campaign {run.name} is asked to go on; see it with: kernelteam status"


def wrap_up(run: Run) -> str:
    """Drain, and submit what is on main then. A campaign that does not run does so when it is resumed."""
    if over := state_of(run).finished:
        raise UserError(f"Campaign {run.name} has ended: {over}.", f"Submit its result: kernelteam submit {run.name}")
    run.inbox.leave(Request(kind="wrap-up", why=f"wrapped up {_BY_HAND}"))
    if run.is_driven():
        return f"Campaign {run.name} is asked to wrap up; see it with: kernelteam status"
    return f"Campaign {run.name} does not run; it is wrapped up by: kernelteam resume {run.name}"


def end_rounds(run: Run) -> str:
    """End the team phase: no more rounds and directions, every agent by itself on main."""
    state = state_of(run)
    if over := state.finished or state.team_over:
        what = "Campaign" if state.finished else "The team phase of campaign"
        raise UserError(f"{what} {run.name} has ended: {over}.", "See it with: kernelteam status")
    run.inbox.leave(Request(kind="end-rounds", why=f"ended {_BY_HAND}"))
    when = "" if run.is_driven() else " when it is resumed"
    return f"Campaign {run.name} is asked to end its rounds{when}: every agent then works by itself on main"


def direct(run: Run, agent: str, words: str, categories: tuple[str, ...]) -> str:
    """Give an agent a direction in words. It is claimed by the law of the round, or refused in the campaign's lines."""
    state = state_of(run)
    request = Request(kind="direct", why=f"a person {_BY_HAND}", agent=agent, words=words, categories=categories)
    if why := objection(state, request):
        raise UserError(f"This is no direction: {why}.", 'Write: kernelteam direct AGENT "what to try"')
    if over := state.finished:
        raise UserError(f"Campaign {run.name} has ended: {over}.", "Go on with it: kernelteam resume")
    refused = [body.refused for _, body in answer(state, request) if isinstance(body, DirectionProposed)]
    if refused and refused[0]:
        raise UserError(f"This direction would be refused: {refused[0]}.", "Name what is free with --categories.")
    run.inbox.leave(request)
    said = f"{agent} is asked to take the direction '{name_of(words)}'"
    return f"{said}; see it with: kernelteam watch" if run.is_driven() else f"{said} when the campaign is resumed."


def _require_driven(run: Run, what: str) -> None:
    if run.is_driven():
        return
    over = state_of(run).finished
    why = f"has ended: {over}" if over else "does not run"
    raise UserError(f"Campaign {run.name} {why}, so there is nothing to {what}.", "Go on with it: kernelteam resume")
