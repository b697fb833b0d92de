"""Raw samples as columns: how the ledger stores the restarts of a measurement, in a third of the bytes of maps.

``restarts``: for each restart its workloads in order and how many pairs each has; ``first``: one byte per pair, whether
the candidate went first; ``base`` and ``candidate``: nanoseconds per launch as little-endian doubles.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from protocol.messages import Restart
from protocol.wire import WireError

_DOUBLE = 8  # bytes


def columns(restarts: Sequence[Restart]) -> dict[str, Any]:
    """Restarts as columns, of what msgpack holds."""
    pairs = [pair for restart in restarts for group in restart.pairs.values() for pair in group]
    return {
        "restarts": [{name: len(group) for name, group in restart.pairs.items()} for restart in restarts],
        "first": bytes([pair.candidate_first for pair in pairs]),
        "base": struct.pack(f"<{len(pairs)}d", *[pair.base_ns for pair in pairs]),
        "candidate": struct.pack(f"<{len(pairs)}d", *[pair.candidate_ns for pair in pairs]),
    }


def restarts_from(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as the restarts that ``Restart`` validates. ``WireError``: they do not fit together."""
    try:
        first, base, candidate = found["first"], _doubles(found["base"]), _doubles(found["candidate"])
        rows = zip(first, base, candidate, strict=True)
        pairs = [{"candidate_first": bool(f), "base_ns": b, "candidate_ns": c} for f, b, c in rows]
        groups = iter(pairs)
        restarts = [
            {"pairs": {name: [next(groups) for _ in range(count)] for name, count in restart.items()}}
            for restart in found["restarts"]
        ]
    except (KeyError, TypeError, AttributeError, ValueError, StopIteration, struct.error) as error:
        raise WireError(f"samples that do not fit together: {error}") from error
    if next(groups, None) is not None:
        raise WireError("samples that do not fit together: more pairs than restarts hold")
    return restarts


def _doubles(column: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(column) // _DOUBLE}d", column)
