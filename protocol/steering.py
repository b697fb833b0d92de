"""What a person may ask of a running campaign, and what the law makes of it. Never code: a direction is words.

A request waits in the run folder until the coordinator takes it in. ``answer`` gives the events that it makes true; a
request that was taken in already, by a coordinator that died before it could say so, changes nothing.
"""

from typing import Literal

from pydantic import Field

from protocol import events as ev
from protocol.messages import Message
from protocol.record import CampaignState

Kind = Literal["stop", "pause", "resume", "wrap-up"]


class Request(Message):
    """One request of a person."""

    kind: Kind
    why: str = Field(min_length=1, description="who asked, in a few words")


def answer(state: CampaignState, request: Request) -> tuple[ev.AnyBody, ...]:
    """The events that this request makes true now; none when things are so already."""
    if request.kind == "stop":
        return () if state.stop else (ev.StopRequested(why=request.why),)
    if request.kind == "wrap-up":
        return () if state.wrap_up else (ev.WrapUpRequested(why=request.why),)
    if request.kind == "pause":
        return () if state.paused else (ev.Paused(why=request.why),)
    return (ev.PauseEnded(why=request.why),) if state.paused else ()


def outlives(request: Request) -> bool:
    """Whether a request that nobody took in still stands when a dead campaign is resumed, which is a newer word."""
    return request.kind == "wrap-up"
