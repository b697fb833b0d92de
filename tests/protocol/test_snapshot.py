"""A snapshot is a cache: with it, with an older or a harmed one, or without, the state is the fold of the events."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from story import A, started
from test_state import EVENTS

from protocol import snapshot as snapshots
from protocol.archive import Archive
from protocol.events import Event
from protocol.ledger import Ledger, row_of
from protocol.messages import Verdict
from protocol.policy import Policy
from protocol.snapshot import restore, snapshot_of
from protocol.state import fold


def written(path: Path, events: list[Event], *cuts: int) -> None:
    """A ledger of these events with a snapshot after each cut, the first one whole."""
    with Ledger(path, writer=True) as ledger:
        state, done = fold([]), 0
        for cut in (*cuts, len(events)):
            ledger.store([row_of(event) for event in events[done:cut]])
            state = state if done else fold(events[:0])
            for event in events[done:cut]:
                snapshots.apply(state, event)
            done = cut
            if cut in cuts:
                ledger.remember(snapshot_of(state, whole=cut == cuts[0]))
        assert state == fold(events), "putting experiments away changes nothing"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.lists(st.integers(1, len(EVENTS)), unique=True, min_size=1, max_size=3).map(sorted))
def test_what_is_restored_is_the_fold(tmp_path: Path, cuts: list[int]) -> None:
    path = tmp_path / "l"
    path.unlink(missing_ok=True)
    written(path, EVENTS, *cuts)
    with Ledger(path) as ledger:
        state, remembered = restore(ledger)
    assert remembered == cuts[-1]
    assert state == fold(EVENTS)
    assert list(state.experiments) == list(fold(EVENTS).experiments)


def long_story() -> list[Event]:
    story = started(Policy(max_experiments=None))
    for _ in range(4):
        story.experiment(A, Verdict.REVERT)
        story.land(story.experiment(A, Verdict.KEEP, 0.1), "exploiter-1")
    return story.events


def test_the_second_snapshot_packs_only_what_is_new() -> None:
    events = long_story()
    state = fold(events[:-10])
    whole = snapshot_of(state, whole=True)
    for event in events[-10:]:
        snapshots.apply(state, event)
    assert 0 < len(snapshot_of(state, whole=False).settled) < len(whole.settled)


HARM = {
    "state": "UPDATE snapshot SET body = substr(body, 1, length(body) - 1) || x'00'",
    "experiment": "UPDATE settled SET body = x'80' WHERE id = (SELECT min(id) FROM settled)",
    "missing experiment": "DELETE FROM settled WHERE id = (SELECT min(id) FROM settled)",
    "another law": "UPDATE snapshot SET code = 'older'",
    "from the future": "UPDATE snapshot SET seq = seq + 1000",
    "other events": "UPDATE events SET body = x'00' || body WHERE seq = (SELECT seq FROM snapshot)",
    "no table": "DROP TABLE settled",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM.keys())
def test_a_snapshot_that_is_not_right_is_no_snapshot(tmp_path: Path, harm: str) -> None:
    events = long_story()
    written(tmp_path / "l", events, len(events) - 3)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.recall(snapshots.code()) is not None
    with sqlite3.connect(tmp_path / "l") as db:
        db.execute(harm)
    db.close()
    with Ledger(tmp_path / "l") as ledger:
        if harm is HARM["other events"]:
            assert ledger.recall(snapshots.code()) is None
            return
        state, remembered = restore(ledger)
    assert remembered == 0
    assert state == fold(events)


def test_an_archive_is_a_dict() -> None:
    archive = Archive[int]()
    archive["b"], archive["a"] = 2, 1
    archive.put_away({"b": b"2"}, int)
    assert list(archive) == ["b", "a"]
    assert archive.loose() == {"a": 1}
    assert archive == {"b": 2, "a": 1}
    assert archive.loose() == {"a": 1, "b": 2}, "what was asked for may have been changed"
    del archive["b"]
    assert "b" not in archive
    assert len(archive) == 1
    assert archive.whole()
    assert not Archive[int](["c"]).whole()
