"""Snapshots of the folded state: a cache that saves a restart, and ``status``, the fold of a long ledger.

``restore`` gives what ``fold`` gives. A snapshot counts only when it was folded by this very law (a digest over the
sources of this package), when its bytes are unharmed and when its last event is in the ledger; else everything is
folded afresh.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from protocol.events import Event
from protocol.ledger import Snapshot
from protocol.record import CampaignState, ExperimentState
from protocol.state import apply
from protocol.wire import WireError, decode, pack

EVERY = 4000
"""Events between two snapshots: what a reader folds at most beyond one."""


class Source(Protocol):
    """What a state is restored from: the ledger or its journal."""

    def events(self, after: int = 0, samples: bool = True) -> Iterator[Event]:
        """Events above ``after``."""
        ...

    def recall(self, code: str) -> Snapshot | None:
        """The newest snapshot of this law."""
        ...


def restore(source: Source) -> tuple[CampaignState, int]:
    """The state after all events of the ledger, and the event up to which a snapshot helped (0: none did)."""
    state = _remembered(source) or CampaignState()
    remembered = state.last_seq
    for event in source.events(after=remembered, samples=False):
        apply(state, event)
    return state, remembered


def snapshot_of(state: CampaignState, whole: bool) -> Snapshot:
    """A snapshot of this state, which must be that of the newest event.

    With ``whole`` it holds every experiment, else only those that the last snapshot of this state did not put away.
    Settled experiments are packed in the state, too, until somebody asks for them.
    """
    experiments = dict(state.experiments) if whole else state.experiments.loose()
    packed = {ident: pack(_experiment().dump_python(one, mode="json")) for ident, one in experiments.items()}
    settled = {ident: body for ident, body in packed.items() if _is_settled(state, experiments[ident])}
    still_open = {ident: body for ident, body in packed.items() if ident not in settled}
    body = pack({"state": _state().dump_python(state, mode="json"), "open": still_open})
    state.experiments.put_away(settled, _unpack)
    return Snapshot(state.last_seq, code(), body, settled, whole)


def _is_settled(state: CampaignState, experiment: ExperimentState) -> bool:
    return experiment.verdict is not None and experiment.id not in state.landings


def _remembered(source: Source) -> CampaignState | None:
    snapshot = source.recall(code())
    if snapshot is None:
        return None
    try:
        found = decode(snapshot.body)
        state = _state().validate_python(found["state"])
        records = {**snapshot.settled, **found["open"]}
        state.experiments.put_away({i: body for i, body in records.items() if i in state.experiments}, _unpack)
    except (WireError, ValidationError, KeyError, TypeError):
        return None
    return state if state.experiments.whole() and state.last_seq == snapshot.seq else None


def _unpack(body: bytes) -> ExperimentState:
    return _experiment().validate_python(decode(body))


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the law's sources: another law may fold the same events to another state."""
    seen = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        seen.update(path.read_bytes())
    return seen.hexdigest()


@lru_cache(maxsize=1)
def _state() -> TypeAdapter[Any]:
    return TypeAdapter(CampaignState)


@lru_cache(maxsize=1)
def _experiment() -> TypeAdapter[ExperimentState]:
    return TypeAdapter(ExperimentState)
