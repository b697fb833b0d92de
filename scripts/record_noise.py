"""Record the noise of a machine's CPU: A/A pairs of the CPU examples as the judge measures them, many restarts.

usage: python scripts/record_noise.py [--restarts 24] [--pairs 16] [--seconds 600] [--out FOLDER]

Writes statistics-cpu-traces.json: per example and workload, the log ratio of every pair in units of 1e-5 and its order,
restart by restart. choose_statistics.py draws from it, as it does from its H200 traces. What else loads the machine
belongs to the recording: run it on the kind of machine that campaigns run on; the load is in the file.
"""

import argparse
import json
import os
import random
import tempfile
import time
from math import log
from pathlib import Path
from typing import Any

from decisions import circumstances
from decisions_cpu import SIZES

from protocol.messages import Restart
from team.devices import cpu_device
from team.devices.cpu import cpu_devices
from team.judge.bench import quiet_torch
from team.judge.check import Checker
from team.judge.ground import CpuGround
from team.judge.kernels import KernelShop

TRACES = "statistics-cpu-traces.json"


def compact(name: str, workload: str, restarts: list[Restart], ns: float) -> dict[str, Any]:
    """One workload's recording, small enough to keep."""
    pairs = [restart.pairs[workload] for restart in restarts]
    return {
        "name": f"{name} {workload}",
        "ns per launch": round(ns),
        "candidate_first": [[int(pair.candidate_first) for pair in run] for run in pairs],
        "ratio_1e-5": [[round(1e5 * log(pair.base_ns / pair.candidate_ns)) for pair in run] for run in pairs],
    }


def record(restarts: int, pairs: int, seconds: float) -> dict[str, Any]:
    """A/A restarts of every example in turn, in random order, until there are enough or the time is up."""
    quiet_torch()
    device = cpu_device(cpu_devices(1)[0].id)
    device.pin()
    about = circumstances(device.id, seconds)
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:
        shop = KernelShop(device, Path(scratch))
        ground = CpuGround(device, shop, Path(scratch) / "empty")
        loops, seen, speeds = {}, {name: list[Restart]() for name in SIZES}, {}
        for name, folder in SIZES.items():
            task = shop.task(folder)
            kernel = shop.kernel(task, folder, "base").artifact
            source = ground.inputs(task)
            found = Checker(ground.bench, task, source, task.spec.policy).check("base", kernel, None, profiles=False)
            loops[name] = ground.loop(task, kernel, kernel, found, ground.first_launches(task, found))
            speeds[name] = found.launch_ns
        for _ in range(restarts):
            for name in random.sample(list(SIZES), len(SIZES)):
                if time.monotonic() < until:
                    seen[name].append(loops[name].restart(pairs))
        info = device.info()
        ground.bench.close()
        shop.close()
    kernels = [
        compact(name, workload, seen[name], ns) for name in SIZES for workload, ns in speeds[name].items() if seen[name]
    ]
    about["load after"] = round(os.getloadavg()[0], 1)
    return {"cpu": info.name, "cores": os.cpu_count(), "what": __doc__, "run": about, "kernels": kernels}


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "benchmarks" / "results")
    options = parser.parse_args()
    recorded = record(options.restarts, options.pairs, options.seconds)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / TRACES).write_text(json.dumps(recorded) + "\n")
    for kernel in recorded["kernels"]:
        ratios = [ratio for run in kernel["ratio_1e-5"] for ratio in run]
        print(f"{kernel['name']}: {len(kernel['ratio_1e-5'])} restarts, {len(ratios)} pairs")


if __name__ == "__main__":
    main()
