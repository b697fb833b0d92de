"""Kill random processes of real CPU campaigns at random moments, and audit what is left.

    python scripts/kill_points.py [--kills 200] [--per-campaign 25] [--seed 0] [--side-by-side 1]

A campaign mostly waits for processes to start, so a few may be played side by side. Campaign ``n`` is played with seed
``--seed`` + n. The victims and the audit are those of ``tests/team/campaign/killing.py``: driver, guardian,
coordinator, agents, judges, runners, several at once, everything. Prints a table and writes
``benchmarks/results/kill-points.json``. The exit status is 1 when anything did not hold; the folder of that campaign is
kept then.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "team" / "campaign")]

from killing import Killing, Tale, make_bench  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "kill-points.json"


def play(seed: int, kills: int) -> tuple[Tale, str]:
    """One campaign: its tale, and what broke (empty when all held)."""
    folder = Path(tempfile.mkdtemp(prefix=f"kt-kills-{seed}-"))
    bench = make_bench(folder)
    killing = Killing(bench, seed)
    try:
        killing.run(kills)
    except AssertionError as broken:  # Broken, or a wait of the bench that ran out
        for process in bench.processes():
            process.kill()
        return killing.tale, f"{broken} (see {folder})"
    shutil.rmtree(folder)
    return killing.tale, ""


def report(tales: list[Tale], broken: dict[int, str], took: float) -> dict[str, object]:
    """What the JSON file holds."""
    points = [point for tale in tales for point in tale.points]
    return {
        "cpu": f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}",
        "commit": subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip(),
        "load": os.getloadavg(),
        "campaigns": len(tales),
        "kill points": len(points),
        "processes killed": sum(len(point.killed) for point in points),
        "by kind": dict(Counter(point.kind for point in points)),
        "events": sum(tale.events for tale in tales),
        "acknowledged before a kill": sum(point.acknowledged for point in points),
        "experiments": sum(tale.experiments for tale in tales),
        "lost and handed out again": sum(tale.lost for tale in tales),
        "landed": sum(tale.landed for tale in tales),
        "resumes": sum(tale.resumes for tale in tales),
        "broken": {str(seed): why for seed, why in broken.items()},
        "seconds": round(took, 1),
        "tales": [asdict(tale) for tale in tales],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--per-campaign", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--side-by-side", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULT)
    asked = parser.parse_args()
    shares = [min(asked.per_campaign, asked.kills - done) for done in range(0, asked.kills, asked.per_campaign)]
    tales: list[Tale] = []
    broken: dict[int, str] = {}
    found: dict[str, object] = {}
    begun = time.monotonic()
    print("seed  kills  events  experiments  lost  landed  resumes  seconds", flush=True)
    with ThreadPoolExecutor(asked.side_by_side) as pool:
        for tale, why in pool.map(play, range(asked.seed, asked.seed + len(shares)), shares):
            tales.append(tale)
            figures = (tale.events, tale.experiments, tale.lost, tale.landed, tale.resumes)
            widths = (6, 11, 4, 6, 7)
            cells = "  ".join(f"{value:>{width}}" for value, width in zip(figures, widths, strict=True))
            print(f"{tale.seed:>4}  {len(tale.points):>5}  {cells}  {tale.seconds:>7.1f}  {why}", flush=True)
            if why:
                broken[tale.seed] = why
            found = report(tales, broken, time.monotonic() - begun)  # so a run that is ended early leaves its figures
            asked.output.parent.mkdir(parents=True, exist_ok=True)
            asked.output.write_text(json.dumps(found, indent=1) + "\n")
    print({name: value for name, value in found.items() if name != "tales"})
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
