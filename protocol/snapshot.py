"""Snapshots of the folded state: a cache that saves a restart, and ``status``, the fold of a long ledger.

``restore`` gives what ``fold`` gives. A snapshot counts only when it was folded by this very law (a digest over the
sources of this package), when its bytes are unharmed and when its last event is in the ledger; else everything is
folded afresh.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from protocol.archive import Absent, Archive
from protocol.events import BaselineMeasured, Event
from protocol.ledger import Snapshot
from protocol.messages import Finding, Message, SearchReport
from protocol.record import CampaignState, ExperimentState
from protocol.state import apply
from protocol.wire import WireError, decode, pack

EVERY = 2000
SHARE = 50
"""Events between two snapshots, which is what a reader folds at most beyond one: so many, or that part of the ledger.

What a state holds grows with the ledger, so at equal distances the cost of snapshots per event would grow, too.
"""

_SEARCH, _FINDINGS, _BASELINE = "search/", "findings/", "baseline/"
"""What names of settled records begin with that are no experiments'."""


class Source(Protocol):
    """What a state is restored from: the ledger or its journal."""

    def events(self, after: int = 0, samples: bool = True) -> Iterator[Event]:
        """Events above ``after``."""
        ...

    def recall(self, code: str, settled: bool = True) -> Snapshot | None:
        """The newest snapshot of this law, with or without what is settled."""
        ...


def restore(source: Source) -> tuple[CampaignState, int]:
    """The state after all events of the ledger, and the event up to which a snapshot helped (0: none did)."""
    return _onwards(source, _remembered(source) or CampaignState())


def glance(source: Source) -> CampaignState:
    """The same state without the records that are settled, which most who look never ask for; it costs the same however
    many there are. Whoever asks for one gets ``Absent``, and must ``restore``."""
    try:
        return _onwards(source, _remembered(source, settled=False) or CampaignState())[0]
    except Absent:  # an event after the snapshot asked
        return restore(source)[0]


def _onwards(source: Source, state: CampaignState) -> tuple[CampaignState, int]:
    remembered = state.last_seq
    for event in source.events(after=remembered, samples=False):
        apply(state, event)
    return state, remembered


def distance(last_seq: int) -> int:
    """Events between the last snapshot and the next one, when the ledger holds ``last_seq``."""
    return max(EVERY, last_seq // SHARE)


def snapshot_of(state: CampaignState, whole: bool) -> Snapshot:
    """A snapshot of this state, which must be that of the newest event.

    With ``whole`` it holds every record, else only those that the last snapshot of this state did not put away.
    Settled experiments, searches and baselines are packed in the state, too, until somebody asks for them.
    """
    experiments = dict(state.experiments) if whole else state.experiments.loose()
    packed = {ident: _experiment().dump_json(one) for ident, one in experiments.items()}
    settled = {ident: body for ident, body in packed.items() if _is_settled(state, experiments[ident])}
    still_open = {ident: body for ident, body in packed.items() if ident not in settled}
    reports = dict(state.searches) if whole else state.searches.loose()
    searches = {ident: _json(one) for ident, one in reports.items()}
    measured = dict(state.baselines) if whole else state.baselines.loose()
    baselines = {device: _json(one) for device, one in measured.items()}
    start, found = state.findings.fresh(whole)
    findings = {f"{start}-{start + len(found)}": pack([f.model_dump(mode="json") for f in found])} if found else {}
    body = pack({"state": _state().dump_json(state), "open": still_open})
    state.experiments.put_away(settled, _unpack)
    state.searches.put_away(searches, SearchReport.model_validate_json)
    state.baselines.put_away(baselines, BaselineMeasured.model_validate_json)
    kept = {**settled, **_named(_SEARCH, searches), **_named(_FINDINGS, findings), **_named(_BASELINE, baselines)}
    return Snapshot(state.last_seq, code(), body, kept, whole)


def _is_settled(state: CampaignState, experiment: ExperimentState) -> bool:
    return experiment.verdict is not None and experiment.id not in state.landings


def _remembered(source: Source, settled: bool = True) -> CampaignState | None:
    snapshot = source.recall(code(), settled)
    if snapshot is None:
        return None
    try:
        found = decode(snapshot.body)
        state = _state().validate_json(found["state"])
        records = {**snapshot.settled, **found["open"]}
        _restore(state.experiments, records, _unpack)
        _restore(state.searches, _called(_SEARCH, records), SearchReport.model_validate_json)
        _restore(state.baselines, _called(_BASELINE, records), BaselineMeasured.model_validate_json)
        findings = {_span(places): body for places, body in _called(_FINDINGS, records).items()}
        whole = state.findings.restore(findings, _unpack_findings)
    except (WireError, ValidationError, KeyError, TypeError):
        return None
    whole = whole and all(one.whole() for one in (state.experiments, state.searches, state.baselines))
    return state if (whole or not settled) and state.last_seq == snapshot.seq else None


def _restore(archive: Archive[Any], records: dict[str, bytes], unpack: Callable[[bytes], Any]) -> None:
    archive.put_away({name: body for name, body in records.items() if name in archive}, unpack)


def _span(places: str) -> tuple[int, int]:
    start, end = places.split("-")
    return int(start), int(end)


def _named(prefix: str, records: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{prefix}{name}": body for name, body in records.items()}


def _called(prefix: str, records: dict[str, bytes]) -> dict[str, bytes]:
    return {name[len(prefix) :]: body for name, body in records.items() if name.startswith(prefix)}


def _unpack(body: bytes) -> ExperimentState:
    return _experiment().validate_json(body)


def _json(message: Message) -> bytes:
    return message.model_dump_json().encode()


def _unpack_findings(body: bytes) -> list[Finding]:
    return [Finding.model_validate(one) for one in decode(body)]


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
