"""What the ``catalog`` mind alone finds from the naive CUDA and Triton examples on this machine's GPUs.

    python scripts/bench_catalog.py [EXAMPLE ...] [--experiments 40] [--out benchmarks/results] [--agents 1]

For each example one campaign as a user starts it (``kernelteam demo``), then a profile of its base and its result
(``kernelteam profile``) against roofs measured in the same run. Says the speedup as main was measured against the
baseline with its interval, the share of the binding roof per workload before and after (a share may pass 1 where the
second-level cache holds part of the data), after how many experiments and seconds the last landing that counts came,
and keeps the staircase: every landing with its experiment, time and speedup. Give each GPU its own call
(``CUDA_VISIBLE_DEVICES``). The exit status is 1 when a campaign ended without a landing.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocol import events as ev  # noqa: E402
from protocol.state import CampaignState  # noqa: E402
from team.report.reading import Story, read_story  # noqa: E402
from team.runs import find_run  # noqa: E402

NAIVE = (
    "transpose_cuda", "elementwise_cuda", "reduction_cuda", "softmax_cuda", "rmsnorm_cuda", "matmul_cuda",
    "softmax_triton", "matmul_triton",
)  # fmt: skip
CLOSE_TO_BEST = 0.99
"""The time to best is that of the first landing which reaches this share of the best speedup."""


class Failed(Exception):
    """A command of the product failed; what it said."""


def kernelteam(*words: str, log: Path | None = None) -> str:
    """Run the product as a user does; what it printed. Raises ``Failed``."""
    done = subprocess.run(
        [sys.executable, "-m", "team.cli", *words], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if log:
        log.write_text(done.stdout + done.stderr)
    if done.returncode:
        raise Failed(f"kernelteam {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}"[-2000:])
    return done.stdout


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


def rooflines(which: str) -> dict[str, Any]:
    """Time (us) and share of the binding roof of each workload of the newest campaign's base or result."""
    try:
        told = json.loads(kernelteam("profile", which, "--json"))
    except Failed as failure:
        print(failure, file=sys.stderr)
        return {}
    return {
        one["workload"]: {
            "us": round(one["time_ns"] / 1e3, 2), "roof": one["roof"],
            "share": round(one["share"], 3) if one["share"] else None,
        }
        for one in told["rooflines"]
    }  # fmt: skip


def bench(example: str, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One campaign and its two profiles."""
    os.environ["KERNELTEAM_HOME"] = str(folder / "home")
    begun = time.monotonic()
    kernelteam(
        "demo", example, "--into", str(folder / example), "--experiments", str(asked.experiments),
        "--agents", asked.agents, log=asked.out / f"catalog-{example}.log",
    )  # fmt: skip
    seconds = time.monotonic() - begun
    story = read_story(find_run(None).folder)
    steps = list(staircase(story))
    best = max((step["speedup"] for step in steps), default=1.0)
    reached = next((step for step in steps if step["speedup"] >= CLOSE_TO_BEST * best), None)
    device = next((agent.device.name for agent in story.state.agents.values() if agent.device), "")
    return {
        "example": example, "device": device, "experiments": len(story.state.verdicts),
        "campaign seconds": round(seconds, 1), "speedup [low, estimate, high]": direct(story.state),
        "base": rooflines("base"), "result": rooflines("result"),
        "best reached at": reached and {key: reached[key] for key in ("experiment", "seconds")}, "staircase": steps,
    }  # fmt: skip


def row(found: dict[str, Any]) -> str:
    """One line of the table: speedup, shares of the roof before and after, when the best came."""
    low, gain, high = found["speedup [low, estimate, high]"].get("overall", (1.0, 1.0, 1.0))
    shares = " ".join(
        f"{name}: {_percent(found['base'].get(name))} -> {_percent(one)} of {one['roof'] or 'no roof'}"
        for name, one in found["result"].items()
    )
    reached = found["best reached at"] or {"experiment": "-", "seconds": "-"}
    return (
        f"{found['example']:17} {gain:7.2f}x [{low:.2f}, {high:.2f}] in {found['experiments']} experiments, "
        f"{found['campaign seconds']:.0f} s; best at #{reached['experiment']}, {reached['seconds']} s; {shares}"
    )


def _percent(roofline: dict[str, Any] | None) -> str:
    return f"{roofline['share']:.0%}" if roofline and roofline["share"] else "?"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=NAIVE)
    parser.add_argument("--experiments", type=int, default=40)
    parser.add_argument("--agents", default="1")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    landed = True
    for example in asked.examples:
        with tempfile.TemporaryDirectory(prefix="kt-catalog-") as name:
            try:
                found = bench(example, asked, Path(name))
            except Failed as failure:
                print(failure, file=sys.stderr)
                landed = False
                continue
        (asked.out / f"catalog-{example}.json").write_text(json.dumps(found, indent=1) + "\n")
        print(row(found), flush=True)
        landed = landed and bool(found["staircase"])
    return 0 if landed else 1


if __name__ == "__main__":
    sys.exit(main())
