"""What the ``catalog`` mind alone finds from the naive CUDA and Triton examples on this machine's GPUs.

    python scripts/bench_catalog.py [--only EXAMPLE ...] [--experiments 40] [--minutes 3]
                                    [--calibration 8] [--out benchmarks/results]

For each example one campaign as a user starts it (``kernelteam run``, one agent, ``--minutes`` of wall clock, the A/A
calibration shortened to ``--calibration`` restarts). Says the speedup as main was measured against the baseline with
its interval; the time and the share of the binding roof per workload before and after, as the judge timed them from a
cold cache; the same in steady state beside a copy of as many bytes (``scripts/steady_times.py``); after how many
experiments and seconds the last landing that counts came. Keeps the staircase and everything that was tried. A
campaign that has not ended a minute after its time is stopped, and what its ledger holds is kept all the same. Give
each GPU its own call (``CUDA_VISIBLE_DEVICES``). The exit status is 1 when a campaign ended without a landing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocol import events as ev  # noqa: E402
from protocol.state import CampaignState  # noqa: E402
from team.bench import tree_of  # noqa: E402
from team.errors import UserError  # noqa: E402
from team.report.reading import Story, read_started_story  # noqa: E402
from team.report.way import way_of  # noqa: E402
from team.runs import find_run  # noqa: E402
from team.tasks.examples import copy_example, example_names  # noqa: E402

NAIVE = (
    "transpose_cuda", "elementwise_cuda", "reduction_cuda", "softmax_cuda", "rmsnorm_cuda", "matmul_cuda",
    "softmax_triton", "matmul_triton",
)  # fmt: skip
CLOSE_TO_BEST = 0.99
"""The time to best is that of the first landing which reaches this share of the best speedup."""


STEADY = Path(__file__).with_name("steady_times.py")
GRACE_S = 60.0
"""What a campaign may take beyond its minutes: experiments in flight, landings, the last measurement of main."""
PATIENCE_S = 15.0
"""How long a campaign that was asked to stop is waited for, before it is asked again and then killed."""


def campaign(words: list[str], log: Path, limit_s: float) -> str:
    """Run the product as a user does, at most ``limit_s``; how it ended. Nothing of it is left running."""
    with log.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "team.cli", *words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=told,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            return f"exit status {process.wait(limit_s)}"
        except subprocess.TimeoutExpired:
            return f"stopped after {limit_s:.0f} s"
        finally:  # of an interrupt of this script, too
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask twice, as Ctrl-C would, then kill the driver; its guardian, the process that was started, clears the rest."""
    for act in (process.terminate, process.terminate, lambda: _kill_children(process.pid), process.kill):
        if process.poll() is not None:
            return
        act()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue


def _kill_children(pid: int) -> None:
    for child in psutil.Process(pid).children():
        child.kill()


def staircase(story: Story) -> Iterator[dict[str, Any]]:
    """Main's speedup over the baseline after each landing, as the landings multiply."""
    began, level = story.state.first_time, 0.0
    for event, landed in story.of(ev.Landed):
        level += landed.gain.gain
        experiment = story.state.experiments[landed.experiment]
        yield {
            "experiment": experiment.number, "seconds": round(event.time - began, 1), "speedup": round(exp(level), 3),
            "technique": experiment.plan.technique if experiment.plan else "", "parameters": experiment.parameters,
        }  # fmt: skip


def direct(state: CampaignState) -> dict[str, Any]:
    """The last direct measurement of main against the baseline, overall and by workload: [low, speedup, high]."""
    last = next((main for main in reversed(state.main_measured) if main.estimate), None)
    if last is None or last.estimate is None:
        return {}
    told = {"overall": last.estimate, **last.workloads}
    return {name: [round(exp(value), 3) for value in (one.low, one.gain, one.high)] for name, one in told.items()}


def tried(story: Story) -> list[dict[str, Any]]:
    """Every experiment with its verdict, its gain by workload, its race, and when it began and was settled."""
    began = story.state.first_time
    return [
        {
            "experiment": one.number, "seconds": [round(max(0.0, at - began), 1) for at in (one.started, one.ended)],
            "technique": one.plan.technique if one.plan else "", "verdict": one.verdict, "reason": one.reason,
            "speedup": one.overall and round(exp(one.overall.gain), 3), "parameters": one.parameters,
            "workloads": {name: round(exp(each.gain), 3) for name, each in one.workloads.items()},
            "raced": [{**setting, "log gain": gain} for setting, gain in one.screened],
        }
        for one in story.state.judged
    ]  # fmt: skip


def rooflines(story: Story) -> dict[str, Any]:
    """Time (us) and share of the binding roof by workload, of the baseline and of main as it was measured last."""
    way = way_of(story)
    return {
        name: {
            "roof": steps[-1].line.roof,
            "us": [round(step.line.time_ns / 1e3, 2) for step in (steps[0], steps[-1])],
            "share": [round(step.line.share or 0.0, 3) for step in (steps[0], steps[-1])],
        }
        for name, steps in (way.steps if way else {}).items()
    }  # fmt: skip


def steady(example: str, folder: Path) -> dict[str, Any]:
    """Baseline and result of the campaign in steady state beside a copy, by workload; empty without a GPU's kernel."""
    story, task = read_started_story(find_run(None).folder), folder / example
    problem = story.state.started.problem
    moved = {name: floor.get("bytes_min") for name, floor in problem.floors.items()} if problem else {}
    try:
        trees = [str(tree_of(which, task, None, folder / f"tree-{which}")[1]) for which in ("base", "result")]
        words = [sys.executable, str(STEADY), str(task), *trees, "--bytes", json.dumps(moved)]
        done = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=GRACE_S, check=True
        )
    except (UserError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(error.stderr[-2000:], file=sys.stderr)
    else:
        return json.loads(done.stdout.splitlines()[-1])
    return {}


def bench(example: str, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One campaign, from its ledger."""
    os.environ["KERNELTEAM_HOME"] = str(folder / "home")
    task = copy_example(example, folder / example)
    begun = time.monotonic()
    law = folder / "campaign.toml"
    law.write_text(f"[policy]\ncalibration_restarts = {asked.calibration}\n")
    words = ["run", str(task), "--yes", "--experiments", str(asked.experiments), "--minutes", str(asked.minutes)]
    ended = campaign(
        [*words, "--agents", asked.agents, "--seed", str(asked.seed), "--campaign", str(law)],
        asked.out / f"catalog-{example}.log", 60.0 * asked.minutes + GRACE_S,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    story = read_started_story(find_run(None).folder)
    steps = list(staircase(story))
    best = max((step["speedup"] for step in steps), default=1.0)
    reached = next((step for step in steps if step["speedup"] >= CLOSE_TO_BEST * best), None)
    device = next((agent.device for agent in story.state.agents.values() if agent.device), None)
    baseline = next((event.time for event, _ in story.of(ev.BaselineMeasured)), None)
    return {
        "example": example, "device": device and device.name, "kind": device and device.kind,
        "roofs": device and device.peaks, "ended": ended,
        "experiments": len(story.state.verdicts), "campaign seconds": round(seconds, 1),
        "baseline seconds": baseline and round(baseline - story.state.first_time, 1),
        "speedup [low, estimate, high]": direct(story.state), "rooflines [baseline, result]": rooflines(story),
        "steady [baseline, result]": {},
        "best reached at": reached and {key: reached[key] for key in ("experiment", "seconds")}, "staircase": steps,
        "tried": tried(story),
    }  # fmt: skip


def row(found: dict[str, Any]) -> str:
    """One line of the table: speedup, shares of the roof before and after, when the best came."""
    measured = found["speedup [low, estimate, high]"].get("overall")
    level = found["staircase"][-1]["speedup"] if found["staircase"] else 1.0
    speed = f"{measured[1]:.2f}x [{measured[0]:.2f}, {measured[2]:.2f}]" if measured else f"{level:.2f}x by its steps"
    each = found["speedup [low, estimate, high]"]
    shares = "; ".join(
        f"{name} {f'{each[name][1]:.2f}x, ' if name in each else ''}{one['us'][0]:.1f} -> {one['us'][1]:.1f} us, "
        f"{one['share'][0]:.0%} -> {one['share'][1]:.0%} of the {one['roof']} roof"
        for name, one in found["rooflines [baseline, result]"].items()
    )
    beside = "; ".join(
        f"{name} {one['us'][0]:.1f} -> {one['us'][-1]:.1f} us, {one['us'][0] / one['us'][-1]:.2f}x"
        + (f", {one['share of the copy'][-1]:.0%} of a copy's {one['copy GB/s']} GB/s" if "copy GB/s" in one else "")
        for name, one in found["steady [baseline, result]"].items()
    )
    reached = found["best reached at"] or {"experiment": "-", "seconds": "-"}
    spent = f"in {found['experiments']} experiments, {found['campaign seconds']:.0f} s ({found['ended']})"
    best = f"best at #{reached['experiment']}, {reached['seconds']} s"
    return f"{found['example']}: {speed} {spent}; {best}\n    judged: {shares}\n    steady: {beside}"


def keep(found: dict[str, Any], out: Path) -> None:
    (out / f"catalog-{found['example']}.json").write_text(json.dumps(found, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="EXAMPLE", choices=example_names(), default=NAIVE)
    parser.add_argument("--experiments", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--calibration", type=int, default=8)
    parser.add_argument("--agents", default="1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    landed = True
    for example in asked.only:
        with tempfile.TemporaryDirectory(prefix="kt-catalog-", ignore_cleanup_errors=True) as name:
            try:
                found = bench(example, asked, Path(name))
                keep(found, asked.out)
                found["steady [baseline, result]"] = steady(example, Path(name)) if found["kind"] == "cuda" else {}
            except UserError as error:  # no ledger: the log says why
                print(f"{example}: {error}", file=sys.stderr, flush=True)
                landed = False
                continue
        keep(found, asked.out)
        print(row(found), flush=True)
        landed = landed and bool(found["staircase"])
    return 0 if landed else 1


if __name__ == "__main__":
    sys.exit(main())
