"""Raw pairs of one workload as columns: an experiment holds hundreds, and each crosses every wire of the campaign."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Pair(NamedTuple):
    """One back-to-back comparison on one workload: mean nanoseconds per launch of each side, both above zero."""

    candidate_first: bool
    base_ns: float
    candidate_ns: float


@dataclass(frozen=True, slots=True)
class Pairs(Sequence[Pair]):
    """Pairs in the order in which they were measured; said as a map of three columns of equal length."""

    candidate_first: tuple[bool, ...]
    base_ns: tuple[float, ...]
    candidate_ns: tuple[float, ...]

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Self:
        """Single pairs as columns."""
        rows = tuple(pairs)
        return cls(
            tuple(pair.candidate_first for pair in rows),
            tuple(pair.base_ns for pair in rows),
            tuple(pair.candidate_ns for pair in rows),
        )

    def __len__(self) -> int:
        return len(self.base_ns)

    def __iter__(self) -> Iterator[Pair]:
        return map(Pair, self.candidate_first, self.base_ns, self.candidate_ns)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> "Pairs": ...
    def __getitem__(self, index: int | slice) -> "Pair | Pairs":
        columns = self.candidate_first[index], self.base_ns[index], self.candidate_ns[index]
        return Pairs(*columns) if isinstance(index, slice) else Pair(*columns)  # pyright: ignore[reportArgumentType]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Columns; times must be above zero, and a pair must have all three."""
        times = core_schema.tuple_variable_schema(core_schema.float_schema(gt=0.0, allow_inf_nan=False))
        orders = core_schema.tuple_variable_schema(core_schema.bool_schema())
        columns = {"candidate_first": orders, "base_ns": times, "candidate_ns": times}
        fields = [core_schema.dataclass_field(name, column) for name, column in columns.items()]
        told = core_schema.dataclass_args_schema(cls.__name__, fields, extra_behavior="forbid")
        made = core_schema.dataclass_schema(cls, told, list(columns), slots=True, frozen=True)
        return core_schema.no_info_after_validator_function(cls._of_equal_columns, made)

    def _of_equal_columns(self) -> Self:
        if not len(self.candidate_first) == len(self.base_ns) == len(self.candidate_ns):
            raise ValueError("the columns of pairs must be equally long")
        return self
