"""Following a ledger: complete, in order, resumable; the terminal is clean whatever ends it."""

import io
import threading
from pathlib import Path

import pytest
from campaigns import Script, campaign
from rich.console import Console

from protocol import events as ev
from protocol.messages import Verdict
from protocol.state import CampaignState
from team.report.live import Tail, follow, view

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


def terminal() -> Console:
    able = {"TERM": "xterm-256color"}  # whatever terminal the tests themselves were started from
    return Console(
        file=io.StringIO(), force_terminal=True, width=120, height=40, color_system="truecolor", _environ=able
    )


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def over(state: CampaignState) -> bool:
    return bool(state.finished)


def test_lines_come_while_the_campaign_is_written(tmp_path: Path) -> None:
    lines: list[str] = []
    writer = threading.Thread(target=campaign, args=(tmp_path, 5))
    writer.start()
    state = follow(tmp_path, lines.append, over)
    writer.join()
    assert [f"#{number} " in "\n".join(lines) for number in range(1, 6)] == [True] * 5
    assert "finished" in lines[-1]
    assert state.numbered == 5


def test_following_goes_on_where_it_ended(tmp_path: Path) -> None:
    script = Script(tmp_path)
    tail, lines = Tail(tmp_path), list[str]()
    script.start()
    follow(tmp_path, lines.append, lambda _: True, tail=tail)
    before = len(lines)
    script.say("", ev.Finished(why="the end"))
    follow(tmp_path, lines.append, over, tail=tail)
    assert len(lines) == before + 1
    assert "the end" in lines[-1]


def test_a_run_without_a_ledger_is_waited_for(tmp_path: Path) -> None:
    looks: list[int] = []

    def thrice(state: CampaignState) -> bool:
        looks.append(state.last_seq)
        return len(looks) == 3

    assert follow(tmp_path, lambda _: None, thrice).start is None


def test_the_live_view_comes_and_goes(tmp_path: Path) -> None:
    campaign(tmp_path, 6)
    console = terminal()
    follow(tmp_path, lambda _: pytest.fail("lines belong on the terminal"), over, console)
    text = written(console)
    assert "loop-interchange" in text
    assert text.rindex(SHOW_CURSOR) > text.rindex(HIDE_CURSOR)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_terminal_is_clean_after_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    Script(tmp_path).start()
    console = terminal()
    looks = iter((False, False))

    def fail(state: CampaignState) -> bool:
        for look in looks:
            return look
        raise error

    with pytest.raises(error):
        follow(tmp_path, lambda _: None, fail, console)
    assert written(console).rindex(SHOW_CURSOR) > written(console).rindex(HIDE_CURSOR)


def test_a_thousand_agents_fit(tmp_path: Path) -> None:
    script = Script(tmp_path, tuple(f"cpu:{index}" for index in range(60)))
    script.start()
    console = terminal()
    console.print(view(script.state, console, 1, script.now))
    assert "and 48 more agents" in written(console)
    assert written(console).count("\n") < 40


def test_the_staircase_is_drawn(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    ident = script.begin("explorer-1", script.plan())
    script.end(ident, Verdict.KEEP, 0.5)
    script.land(ident, 0.5, "exploiter-1")
    console = terminal()
    console.print(view(script.state, console, 1, script.now))
    assert "▁█" in written(console)
