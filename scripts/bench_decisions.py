"""False keeps and power of the judge's decisions, beside three simpler protocols: on CUDA kernels, or the CPU examples.

usage: python scripts/bench_decisions.py [--device cuda|cpu] [--sizes NAME,NAME] [--seconds 90] [--out FOLDER]

Goes on where the result file of an earlier run stands, until there are 400 A/A and 100 planted trials of every
protocol; ``--afresh`` begins anew. ``--seconds`` are for one size, its preparation included. Several processes, each on
its own GPU (CUDA_VISIBLE_DEVICES) with its own ``--sizes``, may write into one folder. How the trials are made:
decisions_cuda.py, decisions_cpu.py. The others keep when base / candidate >= 1 + threshold: (a) medians of 100 timed
launches each, (b) medians of ``triton.testing.do_bench`` (on a CPU: its loop and defaults with the host's clock),
(c) 50 launches of A, then 50 of B.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from decisions import all_protocols, circumstances, keep, known


def main() -> None:
    """All sizes that were asked for; the result is written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sizes", default="", help="names, separated by commas; default: all")
    parser.add_argument("--seconds", type=float, default=90.0, help="for all protocols of one size")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--afresh", action="store_true", help="forget the trials of earlier runs")
    options = parser.parse_args()
    if options.device == "cuda":
        import decisions_cuda as kind
    else:
        import decisions_cpu as kind
    names = options.sizes.split(",") if options.sizes else list(kind.SIZES)
    if unknown := [name for name in names if name not in kind.SIZES]:
        parser.error(f"there is no size {unknown[0]!r}; there are: {', '.join(kind.SIZES)}")
    path = options.out / f"decisions-{options.device}.json"
    with tempfile.TemporaryDirectory() as scratch, kind.opened(Path(scratch)) as bench:
        for name in names:
            run = circumstances(bench.hardware["id"], options.seconds)
            until = time.perf_counter() + options.seconds
            before = {} if options.afresh else known(path, name)
            with bench.prepared(name) as ready:
                print(f"{name}: {json.dumps(ready.facts)}", flush=True)
                record = all_protocols(ready, until, options.seconds, before)
            record["runs"] = [*before.get("runs", []), run]
            keep(path, bench.hardware, name, record)


if __name__ == "__main__":
    main()
