"""Kernel Tuner and the team's exploiter on the same tunable kernel, space and GPU: best time and GPU seconds of each.

    python scripts/bench_tuner.py [--seconds 60] [--strategies genetic_algorithm bayes_opt] [--out benchmarks/results]

The kernel is ``scripts/tuner/product.cu``: seven constants with 864 settings, every one valid. Kernel Tuner (from PyPI,
over CuPy and NVRTC) gets the constants as its tunable parameters and checks no result. The exploiter is the ``catalog``
mind in that role, on its constants alone; it works as in a campaign: up to eight settings are built, checked and raced,
the champion is measured against the base until the law decides, and a kept one is the next base. Both get the same wall
clock, during which the GPU is theirs; imports and the start of processes are not counted for either. In the end the
judge measures the settings that each liked best against each other, with an interval.

Needs ``kernel-tuner``, ``python-constraint2`` and ``xmltodict`` beside the product, and CuPy.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from math import exp
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocol.messages import (  # noqa: E402
    SITE,
    TEXT,
    Briefing,
    Measurement,
    Outcome,
    Parameter,
    PastExperiment,
    Phase,
    Position,
    Role,
    Variant,
    Verdict,
)
from protocol.sequential import decide, estimate  # noqa: E402
from roles.minds.catalog import CatalogMind  # noqa: E402
from roles.minds.mind import NothingToPropose  # noqa: E402
from roles.techniques.cpp.knobs import knobs_in  # noqa: E402
from roles.techniques.cpp.syntax import parse  # noqa: E402
from roles.techniques.cuda.knobs import CudaKnobs  # noqa: E402
from team.devices import discover  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.request import Compare, Screen  # noqa: E402
from team.race import race  # noqa: E402
from team.tasks.task import Task, load_task  # noqa: E402

FOLDER = Path(__file__).with_name("tuner")
Settings = Mapping[str, Parameter]


def space(text: str) -> dict[str, tuple[int, ...]]:
    """The constants of the kernel and their values."""
    return {knob.name: knob.values for knob in knobs_in(parse(text, "cuda"))}


# ---------------------------------------------------------------- Kernel Tuner


def tuned(text: str, dims: Mapping[str, int], strategy: str, seconds: float, seed: int) -> dict[str, Any]:
    """Kernel Tuner with one strategy, in a process of its own."""
    import numpy

    cupy, tuner = (import_module(name) for name in ("cupy", "kernel_tuner"))
    random.seed(seed)
    numpy.random.seed(seed)
    size = {name: numpy.int32(value) for name, value in dims.items()}
    shapes = (("M", "K"), ("K", "N"), ("M", "N"))
    arrays = [numpy.random.randn(*(dims[name] for name in shape)).astype(numpy.float32) for shape in shapes]
    kernel = re.sub(r"^constexpr int \w+ = \d+; *// knob:.*\n|^#include.*\n", "", text, flags=re.MULTILINE)
    knobs = space(text)
    threads = {m * n for m in _shares(knobs, "m") for n in _shares(knobs, "n")}
    cupy.zeros(1)  # the context, as the judge has one before it is asked
    started, began = time.monotonic(), datetime.now(UTC)
    found, _ = tuner.tune_kernel(
        "product", kernel[: kernel.index('extern "C" void solve')], (dims["N"], dims["M"]),
        [*arrays, size["M"], size["N"], size["K"]],
        {**{name: list(values) for name, values in knobs.items()}, "block_size_x": sorted(threads)},
        grid_div_x=["tile_n"], grid_div_y=["tile_m"], lang="CUPY", strategy=strategy, quiet=True,
        restrictions=["block_size_x * work_m * work_n == tile_m * tile_n"], compiler_options=["--std=c++17"],
        strategy_options={"time_limit": seconds},
    )  # fmt: skip
    took = time.monotonic() - started
    timed = [one for one in found if isinstance(one["time"], int | float)]
    best = min(timed, key=lambda one: one["time"])
    parts = ("compile_time", "benchmark_time", "verification_time", "strategy_time", "framework_time")
    return {
        "seconds": took, "settings measured": len(timed), "settings failed": len(found) - len(timed),
        "best settings": {name: best[name] for name in knobs}, "its own best us": 1e3 * best["time"],
        "seconds by part": {name: sum(one.get(name, 0.0) for one in found) / 1e3 for name in parts},
        "way": list(_improvements([(_since(began, one["timestamp"]), 1e3 * one["time"]) for one in timed])),
    }  # fmt: skip


def _shares(knobs: Mapping[str, Sequence[int]], side: str) -> set[int]:
    return {tile // work for tile in knobs[f"tile_{side}"] for work in knobs[f"work_{side}"]}


def _since(began: datetime, stamp: str) -> float:
    then = datetime.fromisoformat(stamp)
    return round(((then if then.tzinfo else then.replace(tzinfo=UTC)) - began).total_seconds(), 1)


def _improvements(seen: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """When something faster than all before was seen."""
    best = float("inf")
    for when, us in sorted(seen):
        if us < best:
            best = us
            yield when, us


# ---------------------------------------------------------------- the exploiter


class Exploiter:
    """The catalog's exploiter with a judge, as in a campaign without its machinery."""

    def __init__(self, judge: Judge, task: Task, folder: Path, seed: int) -> None:
        self.judge, self.task, self.folder, self.seed = judge, task, folder, seed
        self.text = (task.folder / task.spec.source).read_text()
        self.base = self.tree(self.text, "base")
        self.weights = {one.name: one.weight for one in task.spec.must_pass}
        self.history: list[PastExperiment] = []
        self.best: dict[str, Parameter] = {}
        self.level = 0.0
        self.way: list[tuple[float, float]] = []

    def tree(self, text: str, name: str) -> str:
        """A folder with one text of the kernel."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / self.task.spec.source).write_text(text)
        return str(folder)

    def tune(self, seconds: float) -> dict[str, Any]:
        """Race and measure until the time is over or nothing is left."""
        started, failed, raced = time.monotonic(), 0, 0
        why = "the time was over"
        while time.monotonic() - started < seconds:
            try:
                proposal = CatalogMind().propose(self.briefing())
            except NothingToPropose as nothing:
                why = nothing.why
                break
            number = len(self.history)
            trees = [
                self.tree(one.files[self.task.spec.source], f"{number}-{i}") for i, one in enumerate(proposal.variants)
            ]
            gains = self.race(trees)
            raced, failed = raced + len(gains), failed + sum(gain is None for gain in gains)
            past = PastExperiment(
                id=f"e{number}", agent="exploiter-1", role=Role.EXPLOITER, plan=proposal.plan, verdict=Verdict.REVERT,
                reason="", base="b" * 40, commit="c" * 40, parameters=proposal.variants[0].parameters,
                screened=tuple((one.parameters, gain) for one, gain in zip(proposal.variants, gains, strict=True)),
            )  # fmt: skip
            running = [(gain, -i) for i, gain in enumerate(gains) if gain is not None]
            if running:
                at = -max(running)[1]
                past = self.decided(past, proposal.variants[at], trees[at], started)
            self.history.append(past)
        return {
            "seconds": time.monotonic() - started, "settings measured": raced - failed, "settings failed": failed,
            "best settings": self.best, "experiments": len(self.history), "ended": why,
            "way": self.way,
        }  # fmt: skip

    def race(self, trees: Sequence[str]) -> Sequence[float | None]:
        """Log gains over the base."""
        request = Screen(task=str(self.task.folder), base=self.base, candidates=tuple(trees), noise=None)
        return race(self.judge, request, self.weights, self.task.spec.policy).gains

    def decided(self, past: PastExperiment, variant: Variant, tree: str, started: float) -> PastExperiment:
        """The champion measured against the base; kept, it is the next base."""
        seen = self.judge.compare(Compare(task=str(self.task.folder), base=self.base, candidate=tree, noise=None))
        if seen.outcome is not Outcome.MEASURED:
            return past.model_copy(update={"verdict": Verdict.INCORRECT, "parameters": variant.parameters})
        decision = decide(seen.restarts, self.weights, None, self.task.spec.policy)
        kept = decision.state == "keep"
        if kept:
            self.text, self.base = variant.files[self.task.spec.source], tree
            self.best = {name: value for name, value in variant.parameters.items() if name not in (SITE, TEXT)}
            self.level += decision.overall.gain
            self.way.append((round(time.monotonic() - started, 1), round(exp(self.level), 4)))
        verdict = Verdict.KEEP if kept else Verdict.REVERT
        update = {"verdict": verdict, "parameters": variant.parameters, "gain": decision.overall.gain}
        return past.model_copy(update=update)

    def briefing(self) -> Briefing:
        """What the mind is told: this text, the constants alone, everything measured so far."""
        return Briefing(
            agent="exploiter-1", role=Role.EXPLOITER, number=len(self.history), task=self.task.spec.name,
            language="cuda", numerics="reference", editable={self.task.spec.source: self.text}, base="b" * 40,
            workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN, allowed_categories=("knobs",),
            history=tuple(self.history), max_variants=8, seed=self.seed,
        )  # fmt: skip


# ---------------------------------------------------------------- side by side


def against(judge: Judge, task: Task, theirs: str, ours: str) -> dict[str, Any]:
    """The judge's word on both winners: microseconds of each, and how much faster the exploiter's is."""
    seen: Measurement = judge.compare(Compare(task=str(task.folder), base=theirs, candidate=ours, noise=None))
    if seen.outcome is not Outcome.MEASURED:
        return {"outcome": seen.outcome.value, "detail": seen.detail}
    weights = {one.name: one.weight for one in task.spec.must_pass}
    overall = estimate(seen.restarts, weights, None, task.spec.policy, task.spec.policy.total_error)[0]
    pairs = [pair for restart in seen.restarts for each in restart.pairs.values() for pair in each]
    return {
        "Kernel Tuner's us": median(pair.base_ns for pair in pairs) / 1e3,
        "the exploiter's us": median(pair.candidate_ns for pair in pairs) / 1e3,
        "faster by [low, estimate, high]": [round(exp(x), 4) for x in (overall.low, overall.gain, overall.high)],
    }


def with_settings(text: str, setting: Settings) -> str:
    """The kernel with these constants."""
    knobs = CudaKnobs()
    return knobs.apply(text, knobs.applies(text)[0], setting) if setting else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="wall clock of each tuner")
    parser.add_argument("--strategies", nargs="*", default=("genetic_algorithm", "bayes_opt"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    asked = parser.parse_args()
    task = load_task(FOLDER)
    text, dims = (FOLDER / task.spec.source).read_text(), dict(task.spec.must_pass[0].dims)
    device = discover("cuda", 1)[0]
    settings = 1
    for values in space(text).values():
        settings *= len(values)
    result: dict[str, Any] = {"hardware": device.info().model_dump(mode="json"), "settings in the space": settings}
    asked.out.mkdir(parents=True, exist_ok=True)

    def kept(**more: Any) -> None:
        result.update(more)
        (asked.out / "tuner.json").write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(more), flush=True)

    for strategy in asked.strategies:
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            told = apart.submit(tuned, text, dims, strategy, asked.seconds, asked.seed).result()
        kept(**{f"Kernel Tuner, {strategy}": told})
    with tempfile.TemporaryDirectory() as name, Judge(device, Path(name) / "judge", task.spec.policy) as judge:
        exploiter = Exploiter(judge, task, Path(name) / "trees", asked.seed)
        ours = exploiter.tune(asked.seconds)
        kept(exploiter=ours)
        for strategy in asked.strategies:
            best = result[f"Kernel Tuner, {strategy}"]["best settings"]
            theirs = exploiter.tree(with_settings(text, best), f"theirs-{strategy}")
            kept(**{f"exploiter against {strategy}": against(judge, task, theirs, exploiter.base)})


if __name__ == "__main__":
    main()
