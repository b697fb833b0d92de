"""A dict from ids to records, of which settled ones may lie packed as bytes until somebody asks for them.

So a state with 25,000 experiments is restored without reading them, and a snapshot packs only what was touched since
the last one. To pydantic an archive is the list of its ids; ``protocol.snapshot`` carries the records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

V = TypeVar("V")
_UNKNOWN = b""


class Absent(LookupError):
    """A record of which only the id was restored. No ``KeyError``: ``get`` must not take it for one that never was."""


class Archive(MutableMapping[str, V]):
    """Insertion order is kept, whether a record lies packed or loose. Records must not be bytes."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._entries: dict[str, V | bytes] = dict.fromkeys(ids, _UNKNOWN)
        self._loose: dict[str, None] = {}
        self._unpack: Callable[[bytes], V] | None = None

    def __getitem__(self, key: str) -> V:
        entry = self._entries[key]
        if not isinstance(entry, bytes):
            return entry
        if entry == _UNKNOWN:
            raise Absent(key)
        assert self._unpack is not None
        self[key] = value = self._unpack(entry)
        return value

    def __setitem__(self, key: str, value: V) -> None:
        self._entries[key] = value
        self._loose[key] = None

    def __delitem__(self, key: str) -> None:
        del self._entries[key]
        self._loose.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def loose(self) -> dict[str, V]:
        """Records that are not packed: new ones, and whatever was asked for since it was put away."""
        return {key: cast(V, self._entries[key]) for key in self._loose}

    def put_away(self, packed: Mapping[str, bytes], unpack: Callable[[bytes], V]) -> None:
        """Hold these records, all of them known, packed; ``unpack`` brings one back."""
        for key, body in packed.items():
            assert key in self._entries
            self._entries[key] = body
            self._loose.pop(key, None)
        self._unpack = unpack

    def whole(self) -> bool:
        """Whether no record is missing, which only an archive made from ids can lack."""
        return _UNKNOWN not in self._entries.values()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(list)
        )
