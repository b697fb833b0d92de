"""Noise to judge under: bootstrapped recordings (H200, shared CPU) and a model of a CPU; for choose_statistics.py."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from protocol.policy import Policy
from protocol.two_level import Array, Flags

POLICY = Policy()
M = POLICY.pairs_per_restart
CAP = POLICY.looks[-1] // M
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
TRACES = RESULTS / "statistics-h200-traces.json"
CPU_TRACES = RESULTS / "statistics-cpu-traces.json"  # by record_noise.py


@dataclass(frozen=True)
class Trials:
    """Simulated experiments: log ratios and order flags, both (trials, restarts, pairs)."""

    ratios: Array
    first: Flags

    def upto(self, restarts: int) -> "Trials":
        return Trials(self.ratios[:, :restarts], self.first[:, :restarts])

    @property
    def pooled(self) -> Array:
        return self.ratios.reshape(len(self.ratios), -1)


Model = Callable[[np.random.Generator, int, int], Trials]
"""Draws (generator, trials, restarts)."""


def recorded(kernel: dict[str, Any]) -> Model:
    """Bootstrap: a recorded restart, a run of its consecutive pairs, sides swapped at random (an A/A has no sides)."""
    ratios = np.array(kernel["ratio_1e-5"]) * 1e-5
    first = np.array(kernel["candidate_first"]) == 1

    def draw(rng: np.random.Generator, trials: int, restarts: int) -> Trials:
        restart = rng.integers(0, len(ratios), (trials, restarts, 1))
        pair = rng.integers(0, ratios.shape[1] - M + 1, (trials, restarts, 1)) + np.arange(M)
        swap = rng.random((trials, restarts, 1)) < 0.5
        picked = ratios[restart, pair]
        return Trials(np.where(swap, -picked, picked), first[restart, pair] ^ swap)

    return draw


def cpu(
    pair_sd: tuple[float, float] = (0.02, 0.04),
    bias_sd: tuple[float, float] = (0.001, 0.01),
    wild_share: float = 0.03,
    wild_favours: bool = False,
    planted_wild: int = 0,
) -> Model:
    """Shared CPU: heavy-tailed pairs (t, 4 df), restart bias, wild restarts of 6 %, drift that leaves an order effect.

    Scales are drawn per trial. ``wild_favours`` points every wild restart in the candidate's favour; ``planted_wild``
    puts exactly that many into the first eight restarts of a measurement (never of a calibration).
    """

    def draw(rng: np.random.Generator, trials: int, restarts: int) -> Trials:
        shape = (trials, restarts, 1)
        bias = rng.uniform(*bias_sd, (trials, 1, 1)) * rng.standard_normal(shape)
        side = np.where(wild_favours | (rng.random(shape) < 0.5), 1.0, -1.0)
        bias += np.where(rng.random(shape) < wild_share, 0.06 * side, 0.0)
        if planted_wild and restarts == CAP:
            where = np.argsort(rng.random((trials, 8)), axis=1)[:, :planted_wild]
            bias[np.arange(trials)[:, None], where] += 0.06
        first = rng.random((trials, restarts, M)) < 0.5
        drift = 0.002 + 0.003 * rng.standard_normal(first.shape)
        scale = rng.uniform(*pair_sd, (trials, 1, 1)) / sqrt(2.0)
        ratios = bias + scale * rng.standard_t(4, first.shape) + np.where(first, drift, -drift)
        return Trials(ratios, first)

    return draw


def models() -> dict[str, Model]:
    """By name; what is in brackets is a stress beyond the requirement."""
    cards, cores = (json.loads(path.read_text())["kernels"] for path in (TRACES, CPU_TRACES))
    return {
        **{f"H200 {kernel['launching']} {kernel['name']}": recorded(kernel) for kernel in cards},
        **{f"CPU recorded {kernel['name']}": recorded(kernel) for kernel in cores},
        "CPU": cpu(),
        "CPU quiet": cpu((0.02, 0.02), (0.001, 0.003)),
        "CPU loud": cpu((0.04, 0.04), (0.01, 0.01)),
        "[CPU, wild all in favour]": cpu(wild_favours=True),
        "[CPU, one wild of eight]": cpu(wild_share=0.0, planted_wild=1),
        "[CPU, two wild of eight]": cpu(wild_share=0.0, planted_wild=2),
    }


def record(raw: Path) -> None:
    """Compact the full recording to what a lent-buffer campaign uses: order and event log ratio of each pair."""
    kept = []
    for kernel in json.loads(raw.read_text())["kernels"]:
        runs = np.array([[pair[:3] for pair in run] for run in kernel["runs"]])
        if kernel["buffers"] == "lent" and kernel["launching"] in ("graph", "gated"):
            ratios = np.rint(1e5 * np.log(runs[..., 1] / runs[..., 2])).astype(int)
            name = f"{np.median(runs[..., 1:]) / 1000:.1f} us"
            flags = runs[..., 0].astype(int)
            entry = {"name": name, "launching": kernel["launching"], "candidate_first": flags.tolist()}
            kept.append({**entry, "ratio_1e-5": ratios.tolist()})
    TRACES.write_text(json.dumps({"gpu": "NVIDIA H200", "what": record.__doc__, "kernels": kept}) + "\n")
