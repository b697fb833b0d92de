"""Frames: what goes in comes out, and whatever else comes in is a ``WireError``."""

import struct
from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.wire import MAX_FRAME, WireError, decode, encode, length_of, pack

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.binary()
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
BODIES = st.recursive(
    SCALARS | TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


@given(BODIES)
def test_what_goes_in_comes_out(body: object) -> None:
    frame = encode(body)
    assert length_of(frame[:4]) == len(frame) - 4
    assert decode(frame[4:]) == body


@given(st.binary(max_size=200))
def test_garbage_is_a_wire_error_and_nothing_else(payload: bytes) -> None:
    with suppress(WireError):
        decode(payload)


@given(BODIES, st.data())
def test_a_damaged_frame_is_a_wire_error_and_nothing_else(body: object, data: st.DataObject) -> None:
    payload = bytearray(pack(body))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    with suppress(WireError):
        decode(bytes(payload[:cut]))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xc1", id="a byte that msgpack never uses"),
        pytest.param(b"\x81\x90\x01", id="a list as a key"),
        pytest.param(b"\xa1\xff", id="text that is no UTF-8"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="four billion announced items"),
        pytest.param(b"\x91" * 5000, id="a deep nest"),
        pytest.param(b"\xd4\x05\x01", id="an extension type"),
        pytest.param(b"\x01\x02", id="two values in one frame"),
    ],
)
def test_what_is_not_a_value_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        decode(payload)


@pytest.mark.parametrize(
    "body", [2**64, -(2**63) - 1, object(), {1, 2}, "\ud800"], ids=lambda body: type(body).__name__
)
def test_what_msgpack_cannot_hold_is_refused(body: object) -> None:
    with pytest.raises(WireError):
        pack({"x": body})


def test_a_list_that_holds_itself_is_refused() -> None:
    body: list[object] = []
    body.append(body)
    with pytest.raises(WireError):
        pack(body)


def test_frames_have_a_size_cap_on_both_sides() -> None:
    with pytest.raises(WireError, match="over the limit"):
        encode(b"x" * 100, limit=100)
    with pytest.raises(WireError, match="over the limit"):
        length_of(struct.pack("<I", MAX_FRAME + 1))
    with pytest.raises(WireError, match="truncated"):
        length_of(b"\x01\x02\x03")


def test_nothing_is_ever_unpickled() -> None:
    assert decode(msgpack.packb(b"\x80\x04\x8c\x02os\x94")) == b"\x80\x04\x8c\x02os\x94"
