"""Where a campaign stands: from a few events, while it runs, when it is dead."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from campaigns import T0, Script, campaign, estimate
from rich.console import Console

from protocol import events as ev
from protocol.messages import Verdict
from protocol.policy import Policy
from protocol.sequential import combine
from protocol.state import CampaignState
from team.errors import UserError
from team.report.levels import main_speedup, together
from team.report.reading import LEDGER, LOCK, coordinator_pid
from team.report.status import status, status_of
from team.report.status_view import render_status


@contextmanager
def coordinator(run_dir: Path) -> Iterator[None]:
    with (run_dir / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def rendered(found: dict[str, object]) -> str:
    console = Console(width=140, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(render_status(found))
    return console.export_text()


def test_no_campaign_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="kernelteam run"):
        status(tmp_path)


def test_a_ledger_without_events_is_starting_or_dead(tmp_path: Path) -> None:
    Script(tmp_path)
    assert status(tmp_path)["state"] == "dead"
    with coordinator(tmp_path):
        assert status(tmp_path)["state"] == "starting"
    rendered(status(tmp_path))


def test_the_lock_tells_who_lives(tmp_path: Path) -> None:
    assert coordinator_pid(tmp_path) is None
    with coordinator(tmp_path):
        assert coordinator_pid(tmp_path) == os.getpid()
    assert coordinator_pid(tmp_path) is None


def test_running_stopping_finished(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    with coordinator(tmp_path):
        assert status(tmp_path)["state"] == "running"
        script.say("", ev.StopRequested(why="Ctrl-C"))
        assert status(tmp_path)["state"] == "stopping"
    assert status(tmp_path)["state"] == "dead"
    script.say("", ev.Finished(why="Ctrl-C"))
    assert (status(tmp_path)["state"], status(tmp_path)["why"]) == ("finished", "Ctrl-C")


def test_a_refused_baseline_is_the_end(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.say("explorer-1", ev.BaselineRefused(duty="b1", why="it does not build"))
    assert status(tmp_path)["why"] == "no campaign: it does not build"


def test_who_does_what(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start(Policy(max_experiments=10))
    script.baselines()
    script.end(script.begin("explorer-1", script.plan("hoist")), Verdict.REVERT)
    script.begin("explorer-1", script.plan("tile-loops"))
    script.begin("exploiter-1", None)
    found = status_of(script.state, pid=7, now=script.now + 30.0)
    first, second = found["agents"]
    assert (first["duty"], first["subject"], first["duty_s"]) == ("experiment", "#2 tile-loops", 33.0 - 1.0)
    assert (second["subject"], first["experiments"], first["kept"]) == ("planning", 1, 0)
    assert found["experiments"] == {"total": 3, "judged": 1, "kept": 0, "landed": 0, "running": 2}
    assert found["budget"]["experiments"] == {"used": 3, "limit": 10, "left": 7}
    assert found["elapsed_s"] == pytest.approx(script.now + 30.0 - (T0 + 1.0))
    text = rendered(found)
    assert "#2 tile-loops" in text
    assert "3 of 10" in text
    dead = status_of(script.state, pid=None, now=script.now + 30.0)
    assert not any(agent["alive"] or agent["duty"] for agent in dead["agents"])


def test_idle_time_does_not_count(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.say("", ev.Resumed(), after=1000.0)
    assert status_of(script.state, pid=1, now=script.now)["elapsed_s"] == pytest.approx(2.0)


def test_main_is_measured_then_multiplied_by_what_landed_since(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    assert main_speedup(script.state).how == "baseline"
    for gain, how in ((0.5, "landed"), (0.3, "measured and landed")):
        ident = script.begin("explorer-1", script.plan())
        script.end(ident, Verdict.KEEP, gain)
        script.land(ident, gain, "exploiter-1")
        assert main_speedup(script.state).how == how
        if how == "landed":
            script.measure_main("exploiter-1")
            assert main_speedup(script.state).how == "measured"
    assert main_speedup(script.state).estimate.gain == pytest.approx(0.49 + 0.3)


def test_the_product_is_the_laws_product() -> None:
    parts = [estimate(0.5), estimate(-0.1, 0.2), estimate(0.02, 0.001)]
    assert together(parts) == combine(parts)
    assert together([]) == combine([])


def test_json_and_table_of_whole_campaigns(tmp_path: Path) -> None:
    campaign(tmp_path, 24)
    found = status(tmp_path)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert sum(found["verdicts"].values()) == 24
    assert found["speedup"]["text"] in rendered(found)


def test_keys_are_the_documented_ones_at_any_time(tmp_path: Path) -> None:
    campaign(tmp_path, 3)
    assert status(tmp_path).keys() == status_of(CampaignState(), None, 0.0).keys()
    for key in status(tmp_path):
        assert f"``{key}``" in (status_of.__doc__ or "")


def test_status_imports_nothing_heavy(tmp_path: Path) -> None:
    campaign(tmp_path, 1)
    code = (
        "import sys; from pathlib import Path; from team.report.status import status; status(Path(sys.argv[1]));"
        "print([name for name in ('torch', 'ray', 'scipy', 'numpy') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
    assert (tmp_path / LEDGER).is_file()


@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("log",), ("log", "--json")])
def test_looking_at_a_campaign_loads_no_heavy_package(tmp_path: Path, command: tuple[str, ...]) -> None:
    campaign(tmp_path, experiments=6)
    code = (
        "import sys\nfrom team.cli import main\n"
        "try:\n    main()\nexcept SystemExit as leaves:\n    assert not leaves.code\n"
        "heavy = {'torch', 'ray', 'scipy', 'numpy', 'optuna', 'anthropic', 'libcst', 'tree_sitter', 'git', 'pynvml'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    asked = [sys.executable, "-c", code, *command, str(tmp_path)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1:] == ["set()"], done.stderr
    assert "KEEP" in done.stdout, done.stdout
