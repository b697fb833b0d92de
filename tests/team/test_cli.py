"""Wrong input to the command line: one sentence with the remedy and exit status 2, for every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def call(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own, with a data directory that does not exist yet."""
    command = [sys.executable, "-m", "team.cli", *arguments]
    environment = os.environ | {"KERNELTEAM_HOME": str(home)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


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
def test_wrong_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = call(tmp_path / "home", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stderr.startswith("kernelteam: ")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("command", ["run", "eval"])
@pytest.mark.parametrize(
    ("place", "says"),
    [("nosuch", "There is no folder"), ("kernel.cpp", "kernelteam init"), ("empty", "There is no task.toml")],
)
def test_what_is_no_task_is_said_to_be_what_it_is(tmp_path: Path, command: str, place: str, says: str) -> None:
    (tmp_path / "kernel.cpp").write_text("")
    (tmp_path / "empty").mkdir()
    done = call(tmp_path / "home", command, str(tmp_path / place))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    done = call(tmp_path / "home")
    assert done.returncode == 0
    assert "wrap-up" in done.stdout
