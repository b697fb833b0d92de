"""A person steers a campaign that runs: pause, go on, wrap up, from processes of their own."""

import json

import pytest
from campaign_bench import Bench

from protocol import events as ev
from protocol.messages import Experiment


def _has(kind: str):
    return lambda events: any(event.body.kind == kind for event in events)


def _quiet(events: list[ev.Event]) -> bool:
    """Paused, and what ran has been reported."""
    begun = sum(event.body.kind == "duty_given" for event in events)
    over = sum(event.body.kind in ("experiment_judged", "baseline_measured", "nothing_proposed") for event in events)
    return _has("paused")(events) and begun == over


def _directed(words: str):
    """A person's direction was claimed, and the next duty of its owner is in it."""

    def holds(events: list[ev.Event]) -> bool:
        claims = [e.body.direction for e in events if isinstance(e.body, ev.DirectionClaimed)]
        mine = {claim.id for claim in claims if claim.about == words and claim.owner == "explorer-1"}
        given = [e.body.duty for e in events if isinstance(e.body, ev.DutyGiven) and e.agent == "explorer-1"]
        return bool(mine) and isinstance(given[-1], Experiment) and given[-1].direction in mine

    return holds


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_pause_go_on_direct_end_the_rounds_and_wrap_up(bench: Bench) -> None:
    process = bench.start("run", str(bench.task), "--yes", "--agents", "explorer:noop", "--experiments", "500")
    bench.until(_has("experiment_judged"), seconds=600)
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

    said = bench.call("direct", "explorer-1", "keep the row in registers")
    assert "explorer-1 is asked to take the direction 'keep the row in registers'" in said.stdout, said.stderr
    bench.until(_directed("keep the row in registers"))
    shown = json.loads(bench.call("status", "--json").stdout)["agents"][0]
    assert shown["direction"] == "keep the row in registers"
    code = bench.call("direct", "explorer-1", "for (int i = 0; i < 8; i++) { x[i] = 0; }")
    assert code.returncode == 2
    assert "never code" in code.stderr

    assert "asked to end its rounds" in bench.call("end-rounds").stdout
    bench.until(_has("team_phase_ended"))
    again = bench.call("end-rounds")
    assert again.returncode == 2
    assert "has ended: ended from the command line" in again.stderr
    assert bench.call("direct", "explorer-1", "anything").returncode == 2

    assert "asked to wrap up" in bench.call("wrap-up").stdout
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert "Ended: wrapped up from the command line" in output
    assert bench.state().finished
    for command in ("pause", "stop", "wrap-up"):
        done = bench.call(command)
        assert done.returncode == 2
        assert "has ended: wrapped up" in done.stderr
