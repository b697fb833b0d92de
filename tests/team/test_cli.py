"""Wrong input to the command line: one sentence with the remedy and exit status 2, for every command."""

import subprocess
import sys
from pathlib import Path

import pytest

from team.cli import main


class Terminal:
    """The command line in this process, with a data directory that does not exist yet."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._patch, self._capsys = home, monkeypatch, capsys
        monkeypatch.setenv("KERNELTEAM_HOME", str(home))
        monkeypatch.setattr(
            "team.guardian.guard", lambda: None
        )  # it forks, and what is wrong is said before it matters

    def refusal(self, *arguments: str) -> str:
        """The one sentence that a command says as it ends with status 2."""
        self._patch.setattr(sys, "argv", ["kernelteam", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        assert ended.value.code == 2
        assert said.out == ""
        assert len(said.err.splitlines()) == 1, said.err
        assert said.err.startswith("kernelteam: ")
        assert not self.home.exists()
        return said.err


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path / "home", monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--experiments", "0", "x"), "'--experiments'"),
        (("run", "--experiments", "many", "x"), "'--experiments'"),
        (("run", "--seed", "1.5", "x"), "'--seed'"),
        (("run", "--nope", "x"), "--nope"),
        (("run",), "'task'"),
        (("demo", "--experiments", "-3"), "'--experiments'"),
        (("status", "a", "b"), "extra argument"),
        (("ab", "only-one"), "'b'"),
        (("fly",), "'fly'"),
        (("pause",), "no campaign yet"),
        (("direct", "explorer-1"), "'words'"),
        (("memory", "forget"), "not clear what to forget"),
        (("wrap-up", "nosuch"), "no campaign 'nosuch'"),
        (("ablate", "--minutes", "0"), "'--minutes'"),
        (("ablate", "nosuch"), "no campaign 'nosuch'"),
        (("end-rounds", "nosuch"), "no campaign 'nosuch'"),
    ],
)
def test_wrong_input_is_one_sentence(terminal: Terminal, arguments: tuple[str, ...], says: str) -> None:
    assert says in terminal.refusal(*arguments)


@pytest.mark.parametrize("command", ["run", "eval"])
@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nosuch", "There is no folder"),
        ("kernel.cpp", "kernelteam init"),
        ("empty", "There is no task.toml"),
    ],
)
def test_what_is_no_task_is_said_to_be_what_it_is(
    terminal: Terminal, tmp_path: Path, command: str, place: str, says: str
) -> None:
    (tmp_path / "kernel.cpp").write_text("")
    (tmp_path / "empty").mkdir()
    assert says in terminal.refusal(command, str(tmp_path / place))


@pytest.mark.parametrize("command", ["status", "resume", "stop", "log", "report", "submit"])
def test_without_a_campaign_there_is_nothing_to_show_or_to_go_on_with(terminal: Terminal, command: str) -> None:
    assert "There is no campaign yet" in terminal.refusal(command)


def test_the_command_itself_says_so_and_ends_with_status_2() -> None:
    command = [sys.executable, "-m", "team.cli", "fly"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "'fly'" in done.stderr


def test_no_arguments_show_the_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kernelteam"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "wrap-up" in capsys.readouterr().out
