"""Requests to a campaign: in order, whole, and still there until somebody has taken them in."""

from pathlib import Path

from protocol.steering import Request
from team.inbox import Inbox


def test_requests_wait_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    assert list(inbox.waiting()) == []
    asked = [Request(kind=kind, why=f"{kind} please") for kind in ("pause", "resume", "pause", "stop")]
    for request in asked:
        inbox.leave(request)
    assert [request for _, request in inbox.waiting()] == asked
    assert [request for _, request in inbox.waiting()] == asked
    next(inbox.waiting())[0].unlink()
    assert [request for _, request in inbox.waiting()] == asked[1:]


def test_what_is_no_request_is_set_aside_and_does_not_block(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    (tmp_path / "0-scribble.json").write_text("{not json")
    (tmp_path / "1-code.json").write_text('{"kind": "stop", "why": "x", "code": "int main() {}"}')
    (tmp_path / ".half").write_text('{"kind"')
    inbox.leave(Request(kind="stop", why="please"))
    assert [request.why for _, request in inbox.waiting()] == ["please"]
    assert len(list(tmp_path.glob("*.refused"))) == 2
