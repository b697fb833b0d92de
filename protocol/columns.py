"""Raw samples as columns: how the ledger stores the restarts of a measurement, in a third of the bytes of maps.

``restarts``: for each restart its workloads in order and how many pairs each has; ``first``: one byte per pair, whether
the candidate went first; ``base`` and ``candidate``: nanoseconds per launch as little-endian doubles.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from protocol.messages import Restart
from protocol.wire import WireError

_DOUBLE = 8  # bytes


def columns(restarts: Sequence[Restart]) -> dict[str, Any]:
    """Restarts as columns, of what msgpack holds."""
    groups = [group for restart in restarts for group in restart.pairs.values()]
    return {
        "restarts": [{name: len(group.base_ns) for name, group in restart.pairs.items()} for restart in restarts],
        "first": bytes(chain.from_iterable(group.candidate_first for group in groups)),
        "base": _packed(group.base_ns for group in groups),
        "candidate": _packed(group.candidate_ns for group in groups),
    }


def restarts_from(found: Any) -> list[dict[str, Any]]:
    """Columns as the restarts that ``Restart`` validates. ``WireError``: they do not fit together."""
    try:
        first, base, candidate = found["first"], _doubles(found["base"]), _doubles(found["candidate"])
        at, restarts = 0, list[dict[str, Any]]()
        for restart in found["restarts"]:
            pairs: dict[str, Any] = {}
            for name, count in restart.items():
                if count < 0:
                    raise ValueError("a count below zero")
                part = slice(at, at + count)
                at = part.stop
                pairs[name] = _told(list(map(bool, first[part])), base[part], candidate[part])
            restarts.append({"pairs": pairs})
    except (KeyError, TypeError, AttributeError, ValueError, struct.error) as error:
        raise WireError(f"samples that do not fit together: {error}") from error
    if not at == len(first) == len(base) == len(candidate):
        raise WireError("samples that do not fit together: other numbers of pairs than restarts hold")
    return restarts


def restarts_of_maps(found: Any) -> list[dict[str, Any]]:
    """Restarts as older versions stored them, a map for each pair, as those that ``Restart`` validates. ``WireError``:
    they are none."""
    keys = ("candidate_first", "base_ns", "candidate_ns")
    try:
        groups = [restart["pairs"].items() for restart in found]
        return [
            {"pairs": {name: _told(*([one[key] for one in group] for key in keys)) for name, group in each}}
            for each in groups
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise WireError(f"samples that are no pairs: {error}") from error


def _told(first: Sequence[bool], base: Sequence[float], candidate: Sequence[float]) -> dict[str, Any]:
    return {"candidate_first": first, "base_ns": base, "candidate_ns": candidate}


def _packed(columns: Iterable[Sequence[float]]) -> bytes:
    times = list(chain.from_iterable(columns))
    return struct.pack(f"<{len(times)}d", *times)


def _doubles(column: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(column) // _DOUBLE}d", column)
