"""What an agent asks of its judge. The answers are ``protocol.messages.Measurement`` and ``Noise``."""

from typing import Literal

from pydantic import Field

from protocol.messages import Message, Noise
from protocol.methods import Tool


class Compare(Message):
    """Build, check and time a candidate tree against a base tree, paired, until the sequential test decides."""

    kind: Literal["compare"] = "compare"
    task: str = Field(description="trusted task folder: task.toml and the reference are read from here only")
    base: str = Field(description="folder holding the base's editable files (a snapshot of a commit)")
    candidate: str = Field(description="folder holding the candidate's files")
    noise: Noise | None = Field(None, description="the device's calibrated noise; None before calibration")
    held_out: bool = Field(default=False, description="whether shapes that no mind is told of are judged as well")


class Screen(Message):
    """Race variants against one base, losers leaving early; these samples pick a champion and are never reused."""

    kind: Literal["screen"] = "screen"
    task: str
    base: str
    candidates: tuple[str, ...]
    noise: Noise | None = Field(None, description="the device's calibrated noise: with it, losers leave sooner")


class Calibrate(Message):
    """A/A at the base with many restarts, and A/A plus a known extra that must be found."""

    kind: Literal["calibrate"] = "calibrate"
    task: str
    base: str


class Check(Message):
    """Build and check one tree on every workload, timing nothing."""

    kind: Literal["check"] = "check"
    task: str
    tree: str


class Identity(Message):
    """Whether a candidate's outputs are those of the base bit by bit, on fresh inputs; timing nothing."""

    kind: Literal["identity"] = "identity"
    task: str
    base: str
    candidate: str
    draws: int = Field(2, ge=1, description="times that fresh inputs are drawn for every workload")


class Describe(Message):
    """Say what the task computes: its operator block."""

    kind: Literal["describe"] = "describe"
    task: str


class Sanitize(Message):
    """Launch a candidate that was found correct under tools of compute-sanitizer, on the smallest workload."""

    kind: Literal["sanitize"] = "sanitize"
    task: str
    base: str = Field(description="what the base shows as well is no finding")
    candidate: str
    tools: tuple[Tool, ...]


Request = Compare | Screen | Calibrate | Check | Identity | Describe | Sanitize
