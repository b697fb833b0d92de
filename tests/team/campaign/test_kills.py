"""``kill -9`` of anything, anywhere: no acknowledged event is lost, the campaign goes on, nothing is left over."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from campaign_bench import Bench
from killing import Killing, make_bench

from protocol import events as ev

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def _judged(number: int) -> Callable[[list[ev.Event]], bool]:
    return lambda events: sum(event.body.kind == "experiment_judged" for event in events) >= number


def _locks(bench: Bench) -> list[str]:
    return [str(path) for path in bench.run.rglob("*.lock") if path.parent != bench.run]


def _check(bench: Bench, acknowledged: list[ev.Event], output: str) -> None:
    events = bench.events()
    assert events[: len(acknowledged)] == acknowledged
    state = bench.state()
    assert state.finished, output
    assert sorted(e.number for e in state.experiments.values()) == list(range(1, len(state.experiments) + 1))
    assert bench.gone(), [process.cmdline() for process in bench.processes()]
    assert _locks(bench) == []


@pytest.mark.parametrize("mark", ["/artifact", "team.judge.server", "ray::Agent", "ray::Coordinator"])
def test_the_run_goes_on(bench: Bench, mark: str) -> None:
    process = bench.start("run", str(bench.task), "--yes", "--experiments", "6")
    bench.until(_judged(1))
    judge = bench.find("team.judge.server")
    assert judge.nice() == psutil.Process().nice()  # Ray makes its workers yield, and with them what they measure
    victim = bench.find(mark)
    acknowledged = bench.events()
    victim.kill()
    output, _ = process.communicate(timeout=500)
    assert process.returncode == 0, output
    _check(bench, acknowledged, output)


@pytest.mark.parametrize("victim", ["guardian", "driver", "both", "everything"])
def test_a_killed_campaign_resumes(bench: Bench, victim: str) -> None:
    process = bench.start("run", str(bench.task), "--yes", "--experiments", "6")
    bench.until(_judged(1))
    acknowledged = bench.events()
    guardian = psutil.Process(process.pid)
    (driver,) = guardian.children()
    targets = {"guardian": [guardian], "driver": [driver], "both": [guardian, driver]}
    for target in targets.get(victim) or bench.processes():
        with suppress(ProcessLookupError):  # some die with those that were killed before them
            os.kill(target.pid, signal.SIGKILL)
    process.communicate(timeout=400)
    if victim != "guardian":  # a driver that lost its guardian drains in order
        assert bench.call("status").returncode == 0
    assert bench.gone(200), [left.cmdline() for left in bench.processes()]
    done = bench.call("resume")
    assert done.returncode == 0, done.stdout + done.stderr
    _check(bench, acknowledged, done.stdout)


def test_random_kill_points(tmp_path: Path) -> None:
    """Ten of them; ``scripts/kill_points.py`` plays many campaigns of this kind."""
    bench = make_bench(tmp_path)
    try:
        tale = Killing(bench, seed=7).run(10)
    finally:
        for process in bench.processes():
            with suppress(psutil.Error):
                process.kill()
    assert len(tale.points) == 10


def test_ctrl_c_once_drains_and_twice_ends(bench: Bench) -> None:
    process = bench.start("run", str(bench.task), "--yes", "--experiments", "50")
    bench.until(_judged(1))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 130, output
    assert "Ended: stopped by the user" in output
    assert bench.state().finished
    assert bench.gone()

    process = bench.start("resume")
    count = len(bench.events())
    bench.until(lambda events: sum(e.body.kind == "duty_given" for e in events[count:]) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    bench.until(lambda events: any(e.body.kind == "stop_requested" for e in events[count:]))
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert bench.gone(60)
    assert bench.call("status").returncode == 0


def test_an_aa_campaign_keeps_nothing(bench: Bench) -> None:
    noop = "explorer:noop,exploiter:noop"
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "40", "--agents", noop, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    state = bench.state()
    assert len(state.judged) == 40
    assert sum(e.verdict is not None and e.verdict.kept for e in state.judged) == 0
