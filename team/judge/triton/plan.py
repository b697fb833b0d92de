"""What a traced candidate asks for, as types. It comes from a process that is not trusted: every number is checked.

A plan holds machine code and numbers only. Whatever it says, it can do no more than a CUDA kernel of the same task
could: launch code on the buffers that the judge lent.
"""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_SCRATCH = 8 << 30  # bytes of scratch memory that one workload may have
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.]{0,1023}")
_ELF = b"\x7fELF"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Place = tuple[Literal["buffer", "scratch"], Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0, lt=1 << 40)]]
"""A buffer of the judge's or a piece of scratch memory: its number, and an offset in bytes."""


class Kernel(_Strict):
    """One compiled kernel: its symbol, the machine code, bytes of dynamic shared memory."""

    name: str
    image: bytes = Field(max_length=16 << 20)
    shared: int = Field(ge=0, le=1 << 20)

    @model_validator(mode="after")
    def _plausible(self) -> "Kernel":
        if _NAME.fullmatch(self.name) is None or not self.image.startswith(_ELF):
            raise ValueError("a kernel has no proper name or is no machine code")
        return self


class Argument(_Strict):
    """One argument of a launch: a place, or 8 bytes that hold a number."""

    place: Place | None = None
    word: bytes | None = Field(default=None, min_length=8, max_length=8)

    @model_validator(mode="after")
    def _one(self) -> "Argument":
        if (self.place is None) == (self.word is None):
            raise ValueError("an argument is a place or a number")
        return self


class Launch(_Strict):
    """One launch."""

    kind: Literal["launch"]
    kernel: int = Field(ge=0)
    grid: tuple[
        Annotated[int, Field(ge=1, lt=1 << 31)],
        Annotated[int, Field(ge=1, lt=1 << 16)],
        Annotated[int, Field(ge=1, lt=1 << 16)],
    ]
    warps: int = Field(ge=1, le=32)
    ctas: int = Field(default=1, ge=1, le=16)
    cooperative: bool = False
    arguments: tuple[Argument, ...] = Field(max_length=512)


class Fill(_Strict):
    """``size`` bytes set to a word of 1, 2 or 4 bytes."""

    kind: Literal["fill"]
    target: Place
    size: int = Field(ge=0, lt=1 << 40)
    word: bytes

    @model_validator(mode="after")
    def _fits(self) -> "Fill":
        if len(self.word) not in (1, 2, 4) or self.size % len(self.word):
            raise ValueError("a fill is not made of whole words")
        return self


class Copy(_Strict):
    """``size`` bytes copied on the GPU."""

    kind: Literal["copy"]
    target: Place
    source: Place
    size: int = Field(ge=0, lt=1 << 40)


Step = Annotated[Launch | Fill | Copy, Field(discriminator="kind")]


class WorkloadPlan(_Strict):
    """What one call does on one workload: scratch memory in bytes, and the steps in their order."""

    name: str
    scratch: tuple[Annotated[int, Field(ge=1, le=MAX_SCRATCH)], ...] = Field(default=(), max_length=256)
    steps: tuple[Step, ...] = Field(max_length=1024)

    @model_validator(mode="after")
    def _within(self) -> "WorkloadPlan":
        if sum(self.scratch) > MAX_SCRATCH:
            raise ValueError(f"it allocates more than {MAX_SCRATCH >> 30} GiB")
        return self

    def places(self) -> list[Place]:
        """Every place that a step names."""
        found: list[Place] = []
        for step in self.steps:
            if isinstance(step, Launch):
                found += [one.place for one in step.arguments if one.place is not None]
            else:
                found += [step.target, *([step.source] if isinstance(step, Copy) else [])]
        return found


class Plan(_Strict):
    """All workloads of one candidate, and what the assembler said of its kernels."""

    kernels: tuple[Kernel, ...] = Field(max_length=256)
    workloads: tuple[WorkloadPlan, ...]
    remarks: tuple[Annotated[str, Field(max_length=400)], ...] = Field(default=(), max_length=256)
    layers: str = ""

    def check(self, names: list[str], buffers: int) -> "Plan":
        """This plan; ``ValueError`` when it is not for these workloads or names what is not there."""
        if [plan.name for plan in self.workloads] != names:
            raise ValueError("it is for other workloads")
        for plan in self.workloads:
            for kind, number, _ in plan.places():
                if number >= (buffers if kind == "buffer" else len(plan.scratch)):
                    raise ValueError("a step names memory that is not there")
            if any(isinstance(step, Launch) and step.kernel >= len(self.kernels) for step in plan.steps):
                raise ValueError("a step launches a kernel that is not there")
        return self
