"""One problem of our KernelBench set improved by a real campaign with held-out shapes, exported, and evaluated plainly.

    python scripts/bench_kernelbench_campaign.py --out DIR [--problem level1/01_matmul]
        [--kernel FILE | --language cuda] [--dim NAME=SIZE ...] [--held-out rows=1021,depth=517,cols=1533]
        [--minutes 1.5] [--calibration 8]

``kernelteam init`` makes the task (of a person's own kernel, or with the first kernel in ``--language``); the shapes
of ``--held-out`` go to held_out.toml; ``kernelteam run`` with the ``catalog`` mind alone; ``kernelteam export`` of the
task and of the campaign; ``scripts/kernelbench_eval.py`` on both, with eager and ``torch.compile`` in the same run, and
once more for correctness at each held-out shape. Says what every landing check measured on held-out shapes, and main
against the baseline. All of it in ``kernelbench-campaign.json`` and ``.txt`` in DIR, beside the two exported files.

The exit status is 1 unless something landed that was judged on every held-out shape, both exports are right everywhere,
and the improved one is faster beyond doubt.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from bench_catalog import GRACE_S, campaign, direct, staircase, tried  # noqa: E402

from protocol import events as ev  # noqa: E402
from protocol.messages import Estimate  # noqa: E402
from team.report.reading import Story, read_started_story  # noqa: E402
from team.runs import find_run  # noqa: E402
from team.tasks.examples import make_repository  # noqa: E402
from team.tasks.spec import HELD_OUT  # noqa: E402

SET = ROOT / "benchmarks" / "kernelbench_set"
EVALUATION_S = 100.0


def product(*words: str) -> str:
    """One command of the product; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "team.cli", *words],
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=EVALUATION_S,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"kernelteam {words[0]}: {done.stderr[-2000:]}")
    return done.stdout


def made(asked: argparse.Namespace, folder: Path) -> Path:
    """The task in a repository of its own, with its held-out shapes."""
    own = ["--kernel", str(asked.kernel)] if asked.kernel else ["--language", asked.language]
    sizes = [word for one in asked.dim for word in ("--dim", one)]
    product("init", str(SET / f"{asked.problem}.py"), *own, *sizes, "--folder", str(folder))
    lines: list[str] = []
    for number, dims in enumerate(asked.held_out):
        pairs = ", ".join(f"{name} = {size}" for name, size in dims.items())
        lines += ["[[workloads]]", f'name = "secret-{number}"', f"dims = {{ {pairs} }}"]
    (folder / HELD_OUT).write_text("\n".join(lines) + "\n")
    make_repository(folder, "A problem, its kernel, and shapes that are held out")
    return folder


def plainly(
    asked: argparse.Namespace, folder: Path, exports: Mapping[str, Path], dims: Mapping[str, Any], times: bool
) -> Any:
    """What ``kernelbench_eval.py`` says of the exports, in order; with ``times`` beside eager and torch.compile."""
    output = folder / "evaluated.json"
    words = [sys.executable, str(ROOT / "scripts" / "kernelbench_eval.py"), "--device", asked.device, "-o", str(output)]
    words += [f"{SET / asked.problem}.py={path}" for path in exports.values()]
    words += [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]
    words += ["--seconds", "4"] if times else ["--repeats", "0", "--no-compile"]
    subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=EVALUATION_S, stdout=subprocess.DEVNULL)
    return dict(zip(exports, json.loads(output.read_text())["results"], strict=True))


def ratio(one: Estimate) -> list[float]:
    """[low, estimate, high] of a speedup."""
    return [round(exp(value), 4) for value in (one.low, one.gain, one.high)]


def landings(story: Story) -> list[dict[str, Any]]:
    """What each landing check measured, by workload, and how often on held-out shapes."""
    ended = {body.experiment: "landed" for _, body in story.of(ev.Landed)}
    ended |= {body.experiment: f"refused: {body.why}" for _, body in story.of(ev.LandingRefused)}
    return [
        {
            "experiment": story.state.experiments[body.experiment].number,
            "ended": ended.get(body.experiment, "open"),
            "outcome": body.measurement.outcome.value,
            "speedup": {name: ratio(one) for name, one in body.decision.workloads.items()} if body.decision else {},
            "worst error": {one.workload: round(one.worst, 3) for one in body.measurement.checks},
            "held-out pairs": {
                name: sum(len(restart.pairs[name]) for restart in body.measurement.held_out)
                for name in (body.measurement.held_out[0].pairs if body.measurement.held_out else ())
            },
        }
        for _, body in story.of(ev.LandingMeasured)
    ]


def bench(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The whole way; what is known is kept after every step, with its seconds."""
    found: dict[str, Any] = {
        "problem": asked.problem, "kernel": asked.kernel.name if asked.kernel else f"first, {asked.language}",
        "held out": asked.held_out, "seconds": {}, "tried": [], "landing checks": [], "evaluated": {},
        "evaluated at held-out shapes": [],
    }  # fmt: skip
    begun = time.monotonic()

    def step(name: str) -> None:
        nonlocal begun
        found["seconds"][name], begun = round(time.monotonic() - begun, 1), time.monotonic()
        keep(found, asked.out)

    os.environ["KERNELTEAM_HOME"] = str(folder / "home")
    task = made(asked, folder / "task")
    step("init")
    law = folder / "campaign.toml"
    law.write_text(f"[policy]\ncalibration_restarts = {asked.calibration}\n")
    words = ["run", str(task), "--yes", "--experiments", str(asked.experiments), "--minutes", str(asked.minutes)]
    words += ["--agents", "1", "--seed", str(asked.seed), "--campaign", str(law)]
    found["ended"] = campaign(words, asked.out / "kernelbench-campaign.log", 60.0 * asked.minutes + GRACE_S)
    run = find_run(None).folder
    story = read_started_story(run)
    found |= {"speedup [low, estimate, high]": direct(story.state), "staircase": list(staircase(story))}
    found |= {"landing checks": landings(story), "tried": tried(story)}
    step("campaign")
    exports = {"before": asked.out / "before.py", "after": asked.out / "after.py"}
    for path, place in zip(exports.values(), (task, run), strict=True):
        path.unlink(missing_ok=True)
        product("export", str(place), "-o", str(path))
    step("export")
    found["evaluated"] = plainly(asked, folder, exports, sizes_of(asked.dim), times=True)
    step("evaluation")
    for dims in asked.held_out:
        found["evaluated at held-out shapes"].append(plainly(asked, folder, exports, dims, times=False))
    step("evaluation at held-out shapes")
    return found


def keep(found: dict[str, Any], out: Path) -> None:
    """Both files, as far as it went."""
    (out / "kernelbench-campaign.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "kernelbench-campaign.txt").write_text("\n".join(lines(found)) + "\n")


def sizes_of(words: list[str]) -> dict[str, int]:
    """'rows=64' and its like as a mapping."""
    return {name: int(size) for name, _, size in (one.partition("=") for one in words)}


def lines(found: dict[str, Any]) -> list[str]:
    """The same for a person."""
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in found["seconds"].items())
    told = [
        f"{found['problem']} ({found['kernel']}), held out {found['held out']}",
        f"  the campaign: {found.get('ended', 'not run')}; {spent}",
    ]
    for one in found["tried"]:
        gained = f", {one['speedup']}x" if one["speedup"] else ""
        told.append(f"  #{one['experiment']} {one['technique']}: {one['verdict']}{gained} {one['parameters']}")
    for one in found["landing checks"]:
        told.append(f"  landing check of #{one['experiment']}: {one['outcome']}, {one['ended']}")
        for name, (low, middle, high) in one["speedup"].items():
            pairs = one["held-out pairs"].get(name)
            beside = f", {pairs} pairs" if pairs else ""
            error = one["worst error"].get(name, 0.0)
            told.append(f"      {name}: {middle:.3f}x [{low:.3f}, {high:.3f}]{beside}, error {error} of its tolerance")
    overall = found.get("speedup [low, estimate, high]", {}).get("overall")
    if overall:
        told.append(f"  main against the baseline: {overall[1]:.2f}x [{overall[0]:.2f}, {overall[2]:.2f}]")
    for name, one in found["evaluated"].items():
        told.append(f"  {name}, by the plain script: {'right' if one['correct'] else 'WRONG: ' + one['reason']}")
        times = {"own": one["median_ms"], "eager": one["eager_ms"], "torch.compile": one["compile_ms"]}
        told.append("      ms: " + ", ".join(f"{side} {value:.4f}" for side, value in times.items() if value))
        for side, (low, middle, high) in one["speedup"].items():
            told.append(f"      {middle:.4f}x [{low:.4f}, {high:.4f}] as fast as {side}")
    for dims, each in zip(found["held out"], found["evaluated at held-out shapes"], strict=False):
        said = ", ".join(f"{name} {'right' if one['correct'] else 'WRONG'}" for name, one in each.items())
        told.append(f"  at the held-out shape {dims}: {said}")
    return told


def good(found: dict[str, Any]) -> bool:
    """See the exit status."""
    listed, apart = found["evaluated"], found["evaluated at held-out shapes"]
    right = all(one["correct"] for each in (listed, *apart) for one in each.values())
    judged = [one for one in found["landing checks"] if one["ended"] == "landed"]
    everywhere = all(len(one["held-out pairs"]) == len(found["held out"]) for one in judged)
    faster = right and all(
        listed["after"]["speedup"][side][0] > high for side, (_, _, high) in listed["before"]["speedup"].items()
    )
    return bool(judged) and everywhere and faster


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--problem", default="level1/01_matmul")
    parser.add_argument("--kernel", type=Path, help="a person's own kernel of it")
    parser.add_argument("--language", default="cuda")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--held-out", nargs="+", default=["rows=1021,depth=517,cols=1533"], metavar="NAME=SIZE,...")
    parser.add_argument("--experiments", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--calibration", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.held_out = [sizes_of(one.split(",")) for one in asked.held_out]
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kt-kernelbench-", ignore_cleanup_errors=True) as name:
        found = bench(asked, Path(name))
    print((asked.out / "kernelbench-campaign.txt").read_text())
    return 0 if good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
