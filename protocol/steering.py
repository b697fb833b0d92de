"""What a person may ask of a running campaign, and what the law makes of it. Never code: a direction is words.

A request waits in the run folder until the coordinator takes it in. ``answer`` gives the events that it makes true; a
request that was taken in already, by a coordinator that died before it could say so, changes nothing.
"""

import re
from typing import Literal

from pydantic import Field

from protocol import directions, rounds
from protocol import events as ev
from protocol.messages import Message
from protocol.record import CampaignState

Kind = Literal["stop", "pause", "resume", "wrap-up", "direct", "end-rounds"]
MOST_WORDS = 120
_NAME_LENGTH = 48
_CODE = re.compile(
    r"```|[{}]|<<<|;\s*$|^\s*#\s*(include|define|pragma)|\b__\w+|^\s*(def\s+\w+|for|while|if|return)\s*\(",
    re.MULTILINE,
)


class Request(Message):
    """One request of a person."""

    kind: Kind
    why: str = Field(min_length=1, description="who asked, in a few words")
    agent: str = Field(default="", description="whom a direction is for")
    words: str = Field(default="", description="the direction")
    categories: tuple[str, ...] = Field(default=(), description="what it may touch; empty: what the agent's own does")


def answer(state: CampaignState, request: Request) -> directions.Entries:
    """The events that this request makes true now, each with its agent; none when things are so already."""
    if request.kind == "direct":
        return _direction(state, request)
    if request.kind == "end-rounds":
        return rounds.end_team_phase(state, request.why)
    return [("", body) for body in _of_the_campaign(state, request)]


def _of_the_campaign(state: CampaignState, request: Request) -> tuple[ev.AnyBody, ...]:
    if request.kind == "stop":
        return () if state.stop else (ev.StopRequested(why=request.why),)
    if request.kind == "wrap-up":
        return () if state.wrap_up else (ev.WrapUpRequested(why=request.why),)
    if request.kind == "pause":
        return () if state.paused else (ev.Paused(why=request.why),)
    return (ev.PauseEnded(why=request.why),) if state.paused else ()


def _direction(state: CampaignState, request: Request) -> directions.Entries:
    """The claim of a person's direction, or its refusal; nothing when the agent has this very one already."""
    if objection(state, request):
        return []
    mine = directions.current(state, request.agent)
    if mine and (mine.claim.name, mine.claim.about) == (name_of(request.words), request.words):
        return []
    return directions.propose(
        state, request.agent, name_of(request.words), request.words, request.categories, request.why
    )


def objection(state: CampaignState, request: Request) -> str:
    """Why a direction cannot even be proposed, in one sentence; empty when it can."""
    if request.agent not in state.agents:
        return f"there is no agent '{request.agent}' in this campaign; its agents are {', '.join(state.agents)}"
    if not request.words.strip():
        return "a direction without words says nothing"
    if _CODE.search(request.words):
        return "a direction is words, never code: say what to try, and the agent's mind writes it"
    if len(request.words.split()) > MOST_WORDS:
        return f"a direction has at most {MOST_WORDS} words"
    return ""


def name_of(words: str) -> str:
    """A short name for a direction in words."""
    flat = " ".join(words.split())
    return flat if len(flat) <= _NAME_LENGTH else flat[:_NAME_LENGTH].rsplit(" ", 1)[0]


def outlives(request: Request) -> bool:
    """Whether a request that nobody took in still stands when a dead campaign is resumed, which is a newer word."""
    return request.kind in ("wrap-up", "direct", "end-rounds")
