"""Raw samples survive their way through the ledger's columns; columns that do not fit together are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from protocol.columns import columns, restarts_from, restarts_of_maps
from protocol.messages import Restart
from protocol.pairs import Pair, Pairs
from protocol.wire import WireError, decode, pack

times = st.floats(min_value=1e-3, max_value=1e12)
pairs = st.builds(Pair, candidate_first=st.booleans(), base_ns=times, candidate_ns=times)
restarts = st.builds(
    Restart.of, pairs=st.dictionaries(st.text(max_size=5), st.lists(pairs, max_size=5).map(tuple), max_size=3)
)
ONE = Restart.of({"n": (Pair(candidate_first=True, base_ns=2.0, candidate_ns=1.0),)})


@given(st.lists(restarts, max_size=5))
def test_restarts_come_back_as_they_went(told: list[Restart]) -> None:
    found = restarts_from(decode(pack(columns(told))))
    assert [Restart.model_validate(one) for one in found] == told
    assert [list(one["pairs"]) for one in found] == [list(one.pairs) for one in told]


def test_a_restart_holds_nothing_that_columns_forget() -> None:
    assert set(Restart.model_fields) == {"pairs"}
    assert set(Pair._fields) == {"candidate_first", "base_ns", "candidate_ns"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": b""},
        {"base": b"12345678" * 2},
        {"candidate": b"1234567"},
        {"restarts": []},
        {"restarts": [{"n": 2}]},
        {"restarts": 3},
        {"restarts": [{"n": "one"}]},
        {"restarts": [{"n": 2, "m": -1}]},
        {"base": None},
    ],
)
def test_columns_that_do_not_fit_together_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="do not fit together"):
        restarts_from(columns([ONE]) | wrong)


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(WireError, match="first"):
        restarts_from({"restarts": [], "base": b"", "candidate": b""})


@given(st.lists(restarts, max_size=3))
def test_restarts_cross_a_wire(told: list[Restart]) -> None:
    assert [Restart.model_validate(decode(pack(one.model_dump(mode="json")))) for one in told] == told
    assert [Restart.model_validate_json(one.model_dump_json()) for one in told] == told


@given(st.lists(restarts, max_size=3))
def test_what_older_versions_stored_is_read(told: list[Restart]) -> None:
    stored = [{"pairs": {name: [pair._asdict() for pair in each] for name, each in one.pairs.items()}} for one in told]
    assert [Restart.model_validate(one) for one in restarts_of_maps(decode(pack(stored)))] == told


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_ns": [1.0, 2.0]},
        {"candidate_ns": []},
        {"candidate_ns": [0.0]},
        {"base_ns": [float("inf")]},
        {"candidate_first": ["maybe"]},
        {"more": [1.0]},
    ],
)
def test_pairs_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    told: dict[str, Any] = {"candidate_first": [True], "base_ns": [2.0], "candidate_ns": [1.0]}
    assert Restart.model_validate({"pairs": {"n": told}}) == ONE
    with pytest.raises(ValidationError):
        Restart.model_validate({"pairs": {"n": told | wrong}})


@pytest.mark.parametrize("wrong", [3, [{"restarts": 1}], [{"pairs": {"n": [{"base_ns": 1.0}]}}], [{"pairs": [1]}]])
def test_what_no_version_stored_is_refused(wrong: Any) -> None:
    with pytest.raises(WireError, match="no pairs"):
        restarts_of_maps(wrong)


def test_pairs_are_a_sequence() -> None:
    three = [Pair(candidate_first=n == 1, base_ns=1.0 + n, candidate_ns=2.0 + n) for n in range(3)]
    assert list(Pairs.of(three)) == three
    assert Pairs.of(three)[1] == three[1]
    assert list(Pairs.of(three)[1:]) == three[1:]
    assert len(Pairs.of(three)) == 3
