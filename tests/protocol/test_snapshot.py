"""A snapshot is a cache: with it, with an older or a harmed one, or without, the state is the fold of the events."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from story import A, started
from test_state import EVENTS

from protocol import snapshot as snapshots
from protocol.archive import Absent, Archive
from protocol.events import Event
from protocol.ledger import Ledger, row_of
from protocol.messages import Verdict
from protocol.policy import Policy
from protocol.record import CampaignState
from protocol.roll import Roll
from protocol.snapshot import glance, restore, snapshot_of
from protocol.state import apply, fold
from team.report.status import status_of


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
    "experiment": "UPDATE parts SET body = x'80' WHERE part = (SELECT min(part) FROM parts)",
    "another author": "UPDATE parts SET body = another_author(body)",
    "missing experiment": "DELETE FROM parts WHERE part = (SELECT min(part) FROM parts)",
    "another law": "UPDATE snapshot SET code = 'older'",
    "from the future": "UPDATE snapshot SET seq = seq + 1000",
    "other events": "UPDATE events SET body = CAST(x'00' || body AS BLOB) WHERE seq = (SELECT seq FROM snapshot)",
    "no table": "DROP TABLE parts",
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM.keys())
def test_a_snapshot_that_is_not_right_is_no_snapshot(tmp_path: Path, harm: str) -> None:
    events = long_story()
    written(tmp_path / "l", events, len(events) - 3)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.recall(snapshots.code()) is not None
    with sqlite3.connect(tmp_path / "l") as db:
        db.create_function("another_author", 1, lambda body: body.replace(b"explorer-1", b"explorer-9"))
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


def test_a_roll_is_a_list_that_opens_a_block_when_one_of_its_entries_is_asked_for() -> None:
    opened: list[bytes] = []

    def unpack(body: bytes) -> list[str]:
        opened.append(body)
        return list(body.decode())

    roll = Roll[str](5)
    assert roll.restore({(3, 5): b"de", (0, 3): b"abc"}, unpack)
    roll.append("f")
    assert (len(roll), opened) == (6, [])
    assert roll.fresh(whole=False) == (5, ["f"])
    assert roll.fresh(whole=False) == (6, [])
    assert (roll[-2], roll[5], opened) == ("e", "f", [b"de"])
    assert roll.fresh(whole=True) == (0, list("abcdef"))
    assert opened == [b"de", b"abc"], "each block once"
    assert roll[1:3] == ["b", "c"]


@pytest.mark.parametrize("spans", [[(0, 3)], [(3, 5)], [(0, 2), (3, 5)], [(0, 3), (3, 6)], []])
def test_a_roll_that_lacks_a_block_says_so(spans: list[tuple[int, int]]) -> None:
    assert not Roll[str](5).restore(dict.fromkeys(spans, b""), lambda body: [])


def test_a_glance_costs_no_settled_record_and_says_so_when_one_is_asked_for(tmp_path: Path) -> None:
    events = long_story()
    written(tmp_path / "l", events, len(events) - 3)
    with Ledger(tmp_path / "l") as ledger:
        seen = glance(ledger)
        whole, _ = restore(ledger)
    assert status_of(seen, None, 0.0) == status_of(whole, None, 0.0)
    first = next(iter(whole.experiments))
    for ask in (lambda: seen.experiments[first], lambda: seen.experiments.get(first), lambda: seen.findings[0]):
        with pytest.raises(Absent):
            ask()


def test_a_glance_at_what_asks_for_settled_records_restores_them(tmp_path: Path, monkeypatch) -> None:
    events = long_story()
    written(tmp_path / "l", events, len(events) - 3)
    first = next(iter(fold(events).experiments))

    def curious(state: CampaignState, event: Event) -> None:
        assert first not in state.experiments or state.experiments[first]
        apply(state, event)

    monkeypatch.setattr(snapshots, "apply", curious)
    with Ledger(tmp_path / "l") as ledger:
        assert glance(ledger) == fold(events)
