"""A person steers a campaign that runs: pause, go on, wrap up, from processes of their own."""

import json

import pytest
from campaign_bench import Bench

from protocol import events as ev


def _has(kind: str):
    return lambda events: any(event.body.kind == kind for event in events)


def _quiet(events: list[ev.Event]) -> bool:
    """Paused, and what ran has been reported."""
    begun = sum(event.body.kind == "duty_given" for event in events)
    over = sum(event.body.kind in ("experiment_judged", "baseline_measured", "nothing_proposed") for event in events)
    return _has("paused")(events) and begun == over


@pytest.mark.slow
def test_pause_go_on_and_wrap_up(bench: Bench) -> None:
    process = bench.start("run", str(bench.task), "--yes", "--agents", "explorer:noop", "--experiments", "500")
    bench.until(_has("experiment_judged"))
    not_paused = bench.call("resume")
    assert not_paused.returncode == 2
    assert "running and not paused" in not_paused.stderr

    assert "asked to pause" in bench.call("pause").stdout
    bench.until(_quiet)
    assert json.loads(bench.call("status", "--json").stdout)["state"] == "paused"
    count = len(bench.events())
    assert "asked to go on" in bench.call("resume").stdout
    bench.until(lambda events: len(events) >= count + 2)
    assert [event.body.kind for event in bench.events()[count : count + 2]] == ["pause_ended", "duty_given"]

    assert "asked to wrap up" in bench.call("wrap-up").stdout
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert "Ended: wrapped up from the command line" in output
    assert bench.state().finished
    for command in ("pause", "stop", "wrap-up"):
        done = bench.call(command)
        assert done.returncode == 2
        assert "has ended: wrapped up" in done.stderr
