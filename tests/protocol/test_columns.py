"""Raw samples survive their way through the ledger's columns; columns that do not fit together are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.columns import columns, restarts_from
from protocol.messages import Pair, Restart
from protocol.wire import WireError, decode, pack

times = st.floats(min_value=1e-3, max_value=1e12)
pairs = st.builds(Pair, candidate_first=st.booleans(), base_ns=times, candidate_ns=times)
restarts = st.builds(
    Restart, pairs=st.dictionaries(st.text(max_size=5), st.lists(pairs, max_size=5).map(tuple), max_size=3)
)
ONE = Restart(pairs={"n": (Pair(candidate_first=True, base_ns=2.0, candidate_ns=1.0),)})


@given(st.lists(restarts, max_size=5))
def test_restarts_come_back_as_they_went(told: list[Restart]) -> None:
    found = restarts_from(decode(pack(columns(told))))
    assert [Restart.model_validate(one) for one in found] == told
    assert [list(one["pairs"]) for one in found] == [list(one.pairs) for one in told]


def test_a_restart_holds_nothing_that_columns_forget() -> None:
    assert set(Restart.model_fields) == {"pairs"}
    assert set(Pair.model_fields) == {"candidate_first", "base_ns", "candidate_ns"}


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
        {"base": None},
    ],
)
def test_columns_that_do_not_fit_together_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="do not fit together"):
        restarts_from(columns([ONE]) | wrong)


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(WireError, match="first"):
        restarts_from({"restarts": [], "base": b"", "candidate": b""})
