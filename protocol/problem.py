"""The operator block of a campaign: what is to be computed, on which shapes, how exactly, and how fast it can be."""

from typing import Literal

from pydantic import Field

from protocol.messages import Message


class Operand(Message):
    """One tensor of the kernel."""

    name: str
    role: Literal["input", "output", "inout"]
    dtype: str
    shape: tuple[str, ...] = Field(description="extents in terms of the dims")
    tolerance: tuple[float, float] | None = Field(default=None, description="absolute and relative, of an output")


class Problem(Message):
    """An operator as the judge sees it."""

    operator: str
    entry: str = Field(description="what is called: the signature's parameters in order")
    numerics: str
    layout: str = "row-major, contiguous"
    operands: tuple[Operand, ...]
    dispatch: dict[str, tuple[int, int]] = Field(
        default_factory=dict, description="dim -> smallest and largest value over the workloads"
    )
    floors: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="workload -> flops and bytes_min of one launch, from the task's own model"
    )

    def rows(self) -> list[tuple[str, str]]:
        """The block in words, for people."""
        dims = ", ".join(
            f"{name} {low}" if low == high else f"{name} {low}..{high}" for name, (low, high) in self._dims
        )
        floors = "; ".join(f"{name}: {_floor(model)}" for name, model in self.floors.items() if model)
        return [
            ("operator", f"{self.operator}: {self.entry}"),
            *((one.role, _operand(one)) for one in self.operands),
            ("layout", self.layout),
            ("numerics", self.numerics),
            ("dispatch space", dims),
            *([("floor", floors)] if floors else []),
        ]

    @property
    def _dims(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(self.dispatch.items())


def _operand(one: Operand) -> str:
    said = f"{one.name}: {one.dtype}[{', '.join(one.shape)}]"
    return f"{said}, atol {one.tolerance[0]:g}, rtol {one.tolerance[1]:g}" if one.tolerance else said


def _floor(model: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in model.items())
