"""Kernel Tuner and the team's exploiter on the same tunable kernel, space and GPU: best time and GPU seconds of each.

    python scripts/bench_tuner.py [--seconds 60] [--strategies genetic_algorithm bayes_opt] [--out benchmarks/results]

The kernel is ``scripts/tuner/product.cu``: seven constants with 864 settings, every one valid. Kernel Tuner (from PyPI,
over CuPy and NVRTC) gets the constants as its tunable parameters and checks no result. The exploiter is the ``catalog``
mind in that role, on its constants alone; it works as in a campaign: as many settings as the law allows are built on
all cores, checked and screened, the champion is measured against the base until the law decides, and a kept one is the
next base. Both get the same wall clock; imports and the start of processes are not counted for either. In the end the
judge measures the settings that each liked best against each other, with an interval.

Three times are told of both, because each of them can be called what a tuner costs a GPU:

* ``seconds``: the wall clock from the first setting to the last. Kernel Tuner's process holds the GPU all that time,
  whether it compiles (on one core, by NVRTC) or measures, so for it this is also the time for which a GPU must be lent.
* ``GPU seconds``: for the exploiter the time in which its processes use the GPU for anything at all: contexts made and
  taken down, kernels loaded, checked, timed, and the judge's own inputs, references and comparisons. What is left is
  compiling, choosing settings and writing files, which the machine's cores do and for which no GPU is needed; in a
  campaign the judge keeps its GPU then, too, but it idles. For Kernel Tuner: its ``seconds``.
* ``benchmark seconds``: kernels running under a clock. Kernel Tuner's own figure; for the exploiter the exchanges in
  which a runner launches, the untimed first ones and the audits of its clock included.

``found after`` tells the first two when the best setting was there: kept by the exploiter, first timed by Kernel Tuner.
Kernel Tuner checks no result, so nothing of its time goes into that; the exploiter checks everything that it times.

Needs ``kernel-tuner``, ``python-constraint2`` and ``xmltodict`` beside the product, and CuPy.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    Proposal,
    Role,
    Variant,
    Verdict,
)
from protocol.race import settings_worth_building  # noqa: E402
from protocol.sequential import decide, estimate  # noqa: E402
from roles.minds.catalog import CatalogMind  # noqa: E402
from roles.minds.mind import NothingToPropose  # noqa: E402
from roles.techniques.cpp.knobs import knobs_in  # noqa: E402
from roles.techniques.cpp.syntax import parse  # noqa: E402
from roles.techniques.cuda.knobs import CudaKnobs  # noqa: E402
from team.devices import discover  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.compiler import compile_jobs  # noqa: E402
from team.judge.request import Compare, Screen  # noqa: E402
from team.judge.timeline import Stage  # noqa: E402
from team.race import race  # noqa: E402
from team.tasks.task import Task, load_task  # noqa: E402

FOLDER = Path(__file__).with_name("tuner")
ON_CORES = ("build", "compile", "screen expanded")  # stages of the judge that need no GPU
ENCLOSING = ("build", "sift", "check", "measure", "restart", "settle pool")  # shown of each experiment
LAUNCHING = ("launches", "walk")
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
    way = list(_improvements([(_since(began, one["timestamp"]), 1e3 * one["time"]) for one in timed]))
    parts = ("compile_time", "benchmark_time", "verification_time", "strategy_time", "framework_time")
    return {
        "seconds": took, "GPU seconds": took, "benchmark seconds": sum(one["benchmark_time"] for one in found) / 1e3,
        "settings measured": len(timed), "settings failed": len(found) - len(timed),
        "best settings": {name: best[name] for name in knobs}, "its own best us": 1e3 * best["time"],
        "seconds by part": {name: sum(one.get(name, 0.0) for one in found) / 1e3 for name in parts},
        "found after": {"seconds": way[-1][0], "GPU seconds": way[-1][0]}, "way": way,
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


def covered(stages: Iterable[Stage]) -> float:
    """Seconds within at least one of the stages."""
    total, until = 0, 0
    for one in sorted(stages, key=lambda one: one.begin_ns):
        total += max(0, one.end_ns - max(until, one.begin_ns))
        until = max(until, one.end_ns)
    return total * 1e-9


@dataclass
class Spent:
    """What requests to the judge have cost so far, in seconds, and the parts of the latest experiment."""

    gpu: float = 0.0
    benchmark: float = 0.0
    parts: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def on(self, part: str, judge: Judge | None = None) -> Iterator[None]:
        """Charge a block to a part of the experiment, and what the judge did in it to the GPU."""
        began = time.monotonic()
        yield
        self.add(part, time.monotonic() - began)
        if judge is None:
            return
        stages = judge.stages()
        on_gpu = covered(one for one in stages if one.name not in ON_CORES)
        self.gpu += on_gpu
        self.benchmark += covered(one for one in stages if one.name in LAUNCHING)
        self.add(f"{part}: on the GPU", on_gpu)
        for name in ENCLOSING:
            if seconds := covered(one for one in stages if one.name == name):
                self.add(f"{part}: {name}", seconds)

    def add(self, part: str, seconds: float) -> None:
        """Charge one part."""
        self.parts[part] = round(self.parts.get(part, 0.0) + seconds, 3)


class Exploiter:
    """The catalog's exploiter with a judge, as in a campaign without its machinery."""

    def __init__(self, judge: Judge, task: Task, folder: Path, seed: int, jobs: int) -> None:
        self.judge, self.task, self.folder, self.seed, self.jobs = judge, task, folder, seed, jobs
        self.text = (task.folder / task.spec.source).read_text()
        self.base = self.tree(self.text, "base")
        self.weights = {one.name: one.weight for one in task.spec.must_pass}
        self.history: list[PastExperiment] = []
        self.best: dict[str, Parameter] = {}
        self.level = 0.0
        self.build_s: float | None = None
        self.spent = Spent()
        self.way: list[dict[str, float]] = []
        self.told: list[dict[str, Any]] = []

    def tree(self, text: str, name: str) -> str:
        """A folder with one text of the kernel."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / self.task.spec.source).write_text(text)
        return str(folder)

    def tune(self, seconds: float) -> dict[str, Any]:
        """Screen and measure until the time is over or nothing is left."""
        started, failed, raced = time.monotonic(), 0, 0
        why = "the time was over"
        while time.monotonic() - started < seconds:
            self.spent.parts, began = {}, time.monotonic() - started
            try:
                with self.spent.on("ask"):
                    proposal = CatalogMind().propose(self.briefing())
            except NothingToPropose as nothing:
                why = nothing.why
                break
            past, gains = self.experiment(proposal, started)
            self.history.append(past)
            raced, failed = raced + len(gains), failed + sum(gain is None for gain in gains)
            ran = [gain for gain in gains if gain is not None]
            self.told.append({
                "begins": round(began, 1), "seconds": round(time.monotonic() - started - began, 1),
                "settings": len(gains), "failed": len(gains) - len(ran),
                "best screened": round(exp(max(ran, default=0.0)), 4),
                "champion": round(exp(past.gain or 0.0), 4), "verdict": past.verdict.value,
                "GPU seconds so far": round(self.spent.gpu, 2), "parts": self.spent.parts,
            })  # fmt: skip
            print(json.dumps(self.told[-1]), flush=True)
        found = {name: self.way[-1][name] for name in ("seconds", "GPU seconds")} if self.way else {}
        return {
            "seconds": time.monotonic() - started, "GPU seconds": self.spent.gpu, "found after": found,
            "benchmark seconds": self.spent.benchmark, "settings measured": raced - failed, "settings failed": failed,
            "best settings": self.best, "experiments": len(self.history), "ended": why, "way": self.way,
            "timeline": self.told,
        }  # fmt: skip

    def experiment(self, proposal: Proposal, started: float) -> tuple[PastExperiment, Sequence[float | None]]:
        """Screen the variants and measure the champion."""
        number = len(self.history)
        with self.spent.on("trees"):
            texts = [one.files[self.task.spec.source] for one in proposal.variants]
            trees = [self.tree(text, f"{number}-{i}") for i, text in enumerate(texts)]
        request = Screen(task=str(self.task.folder), base=self.base, candidates=tuple(trees), noise=None)
        with self.spent.on("screen", self.judge):
            raced = race(self.judge, request, self.weights, self.task.spec.policy)
        screened = zip((one.parameters for one in proposal.variants), raced.gains, strict=True)
        past = PastExperiment(
            id=f"e{number}", agent="exploiter-1", role=Role.EXPLOITER, plan=proposal.plan, verdict=Verdict.REVERT,
            reason="", base="b" * 40, commit="c" * 40, parameters=proposal.variants[0].parameters,
            screened=tuple(screened),
        )  # fmt: skip
        if raced.champion is not None:
            past = self.decided(past, proposal.variants[raced.champion], trees[raced.champion], started)
        return past, raced.gains

    def decided(self, past: PastExperiment, variant: Variant, tree: str, started: float) -> PastExperiment:
        """The champion measured against the base; kept, it is the next base."""
        with self.spent.on("compare", self.judge):
            seen = self.judge.compare(Compare(task=str(self.task.folder), base=self.base, candidate=tree, noise=None))
        if seen.candidate_build is not None:
            self.build_s = seen.candidate_build.seconds
        if seen.outcome is not Outcome.MEASURED:
            return past.model_copy(update={"verdict": Verdict.INCORRECT, "parameters": variant.parameters})
        decision = decide(seen.restarts, self.weights, None, self.task.spec.policy)
        kept = decision.state == "keep"
        if kept:
            self.text, self.base = variant.files[self.task.spec.source], tree
            self.best = {name: value for name, value in variant.parameters.items() if name not in (SITE, TEXT)}
            self.level += decision.overall.gain
            us = [pair.candidate_ns / 1e3 for one in seen.restarts for each in one.pairs.values() for pair in each]
            self.way.append({
                "seconds": round(time.monotonic() - started, 1), "GPU seconds": round(self.spent.gpu, 1),
                "speedup": round(exp(self.level), 4), "us": round(median(us), 1),
            })  # fmt: skip
        verdict = Verdict.KEEP if kept else Verdict.REVERT
        update = {"verdict": verdict, "parameters": variant.parameters, "gain": decision.overall.gain}
        return past.model_copy(update=update)

    def briefing(self) -> Briefing:
        """What the mind is told: this text, the constants alone, everything measured so far."""
        policy = self.task.spec.policy
        return Briefing(
            agent="exploiter-1", role=Role.EXPLOITER, number=len(self.history), task=self.task.spec.name,
            language="cuda", numerics="reference", editable={self.task.spec.source: self.text}, base="b" * 40,
            workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN, allowed_categories=("knobs",),
            history=tuple(self.history), max_variants=policy.variants, seed=self.seed,
            max_settings=settings_worth_building(policy, self.jobs, self.build_s),
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


def row(name: str, told: Mapping[str, Any], us: float | None) -> str:
    """One tuner in a line."""
    times = ", ".join(f"{told[key]:.1f} {key}" for key in ("seconds", "GPU seconds", "benchmark seconds"))
    found = ", ".join(f"{value:.1f} {key}" for key, value in told["found after"].items())
    best = "nothing that the judge could time" if us is None else f"{us:.1f} us by the judge"
    return f"{name}: {best}, found after {found}; {told['settings measured']} settings in {times}"


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
        jobs = compile_jobs(len(device.cores), task.spec.policy.compile_jobs)
        exploiter = Exploiter(judge, task, Path(name) / "trees", asked.seed, jobs)
        ours = exploiter.tune(asked.seconds)
        kept(exploiter=ours)
        for strategy in asked.strategies:
            best = result[f"Kernel Tuner, {strategy}"]["best settings"]
            theirs = exploiter.tree(with_settings(text, best), f"theirs-{strategy}")
            seen = against(judge, task, theirs, exploiter.base)
            kept(**{f"exploiter against {strategy}": seen})
            print(row(f"Kernel Tuner, {strategy}", result[f"Kernel Tuner, {strategy}"], seen.get("Kernel Tuner's us")))
            print(row("the exploiter", ours, seen.get("the exploiter's us")), flush=True)


if __name__ == "__main__":
    main()
