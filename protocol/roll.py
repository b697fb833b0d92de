"""A list that only grows, of which entries may lie packed in blocks until somebody asks for one of them.

So a state that knows ten thousand findings is restored without reading them, and a snapshot packs only what came since
the last one. To pydantic a roll is its length; ``protocol.snapshot`` carries the entries.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from protocol.archive import Absent

V = TypeVar("V")


class Roll(Sequence[V], Generic[V]):
    """Entries by their place. Entries must not be None, which stands for one that lies in a block."""

    def __init__(self, size: int = 0) -> None:
        self._entries: list[V | None] = [None] * size
        self._blocks: dict[int, bytes] = {}
        self._starts: list[int] = []
        self._kept = size
        self._unpack: Callable[[bytes], Iterable[V]] | None = None

    def append(self, entry: V) -> None:
        """One entry more."""
        self._entries.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, place: int) -> V: ...

    @overload
    def __getitem__(self, place: slice) -> list[V]: ...

    def __getitem__(self, place: int | slice) -> V | list[V]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        if self._entries[place] is None:
            self._open(place % len(self))
        return cast(V, self._entries[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roll) and list(self) == list(cast(Roll[Any], other))

    __hash__ = None  # type: ignore[assignment]

    def _open(self, place: int) -> None:
        if self._unpack is None or not self._starts:
            raise Absent(place)
        start = self._starts[bisect_right(self._starts, place) - 1]
        found = list(self._unpack(self._blocks.pop(start)))
        self._starts.remove(start)
        self._entries[start : start + len(found)] = found

    def fresh(self, whole: bool) -> tuple[int, list[V]]:
        """Place of the first entry that no block of an earlier snapshot holds, and the entries from there on.

        All of them with ``whole``. From now on they count as held.
        """
        start = 0 if whole else self._kept
        self._kept = len(self)
        return start, self[start:]

    def restore(self, blocks: Mapping[tuple[int, int], bytes], unpack: Callable[[bytes], Iterable[V]]) -> bool:
        """Hold blocks, each by the places of its first entry and of the first one after it, for entries that are not
        here. Whether they are all of them."""
        spans = sorted(blocks)
        self._blocks, self._unpack = {start: blocks[start, end] for start, end in spans}, unpack
        self._starts = [start for start, _ in spans]
        return [0, *(end for _, end in spans)] == [*self._starts, len(self)]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls, core_schema.int_schema(ge=0), serialization=core_schema.plain_serializer_function_ser_schema(len)
        )
