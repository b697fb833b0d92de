"""Where the judge's time goes: a calibration and an A/A comparison of examples, by stage of its timeline.

    python scripts/judge_stages.py EXAMPLE [EXAMPLE ...] [--device cuda]

For each stage its seconds and how often it came, the longest first; stages nest. Then the noise, what was planted, and
quartiles of the baseline's times. ``benchmarks/results/h200-judge-stages.txt`` holds what an H200 said.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from team.devices import discover  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.request import Calibrate, Compare  # noqa: E402
from team.judge.timeline import read_stages, timeline_path  # noqa: E402
from team.tasks.examples import copy_example  # noqa: E402

SHOWN = 16


def tell(what: str, seconds: float, path: Path) -> None:
    """One line: wall seconds, then the stages."""
    spent, times = Counter[str](), Counter[str]()
    for stage in read_stages(path):
        spent[stage.name] += stage.end_ns - stage.begin_ns
        times[stage.name] += 1
    stages = " ".join(f"{name}={ns / 1e9:.2f}/{times[name]}" for name, ns in spent.most_common(SHOWN))
    print(f"{what} {seconds:.1f} s: {stages}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="+")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    asked = parser.parse_args()
    device = discover(asked.device, 1)[0]
    for example in asked.examples:
        with tempfile.TemporaryDirectory(prefix="kt-stages-") as place:
            folder = Path(place)
            task = str(copy_example(example, folder / "task"))
            path = timeline_path(folder / "judge", device.id)
            with Judge(device, folder / "judge") as judge:
                began = time.perf_counter()
                noise, measured, found = judge.calibrate(Calibrate(task=task, base=task))
                tell(f"{example} calibrate", time.perf_counter() - began, path)
                print(
                    f"  {noise}; planted {found['planted_gain']:.4f} on {found['planted_workload']}: {found['planted']}"
                )
                for name in measured.restarts[0].pairs:
                    times = [pair.base_ns / 1e3 for restart in measured.restarts for pair in restart.pairs[name]]
                    quartiles = [round(value, 1) for value in statistics.quantiles(times, n=4)]
                    print(f"  {name}: {quartiles} us, {measured.launching.get(name)}")
                began = time.perf_counter()
                judge.compare(Compare(task=task, base=task, candidate=task, noise=noise))
                tell(f"{example} compare", time.perf_counter() - began, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
