"""What the artifacts of a run hold, from raw measurements: ``bench.json``, ``methods.json``, statistics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from typing import Any

import numpy as np

from protocol.messages import Decision, Estimate, Measurement, Outcome, Plan, Variant
from roles.techniques.card import Card, Numerics
from roles.techniques.catalog import all_cards, card_named
from team.optimize.gates import states_of
from team.optimize.options import Options
from team.tasks.spec import TaskSpec

STABLE, BORDERLINE = 0.05, 0.10  # robust coefficient of variation; a label here, never a gate
_MAD = 1.4826  # of a normal distribution: standard deviation over median absolute deviation
_RESAMPLES, _SEED = 400, 17
EFFECTS = {
    Numerics.EXACT: "bitwise_preserving",
    Numerics.REORDERED: "reordered_equivalent",
    Numerics.TOLERANCE: "tolerance_changing",
    Numerics.APPROXIMATE: "tolerance_changing",
}
UNDECLARED = "undeclared"
_UNFILLED = "nobody had a further method for it"
_AXES = {"memory": "memory", "latency": "latency", "compute": "compute"}


def effect_of(plan: Plan) -> str:
    """What a plan's technique may do to results; a technique that no card describes has declared nothing."""
    card = card_named(plan.technique)
    return EFFECTS[card.numerics] if card else UNDECLARED


def stats_of(nanoseconds: Sequence[float]) -> dict[str, Any]:
    """Statistics of one side's samples in milliseconds, the raw ones among them."""
    values = np.array(nanoseconds) * 1e-6
    if not len(values):
        return {}
    middle, mean, spread = float(np.median(values)), float(values.mean()), float(values.std())
    robust = _MAD * float(np.median(np.abs(values - middle))) / middle
    draws = np.random.default_rng(_SEED).choice(values, (_RESAMPLES, len(values)))
    low, high = np.percentile(np.median(draws, axis=1), (2.5, 97.5))
    return {
        "average_ms": mean,
        "median_ms": middle,
        "min_ms": float(values.min()),
        "max_ms": float(values.max()),
        "p10_ms": float(np.percentile(values, 10)),
        "p90_ms": float(np.percentile(values, 90)),
        "stddev_ms": spread,
        "cv": spread / mean,
        "robust_cv": robust,
        "median_ci95_ms": [float(low), float(high)],
        "samples": len(values),
        "raw_ms": [float(one) for one in values],
        "stability": "stable" if robust <= STABLE else "borderline" if robust <= BORDERLINE else "unstable",
    }


def side_ns(measured: Measurement, workload: str, side: str) -> list[float]:
    """Nanoseconds per launch of ``base`` or ``candidate`` in every pair."""
    pairs = [pair for restart in measured.restarts for pair in restart.pairs.get(workload, ())]
    return [pair.base_ns if side == "base" else pair.candidate_ns for pair in pairs]


def average_ms(measured: Measurement, workload: str, side: str) -> float | None:
    """Mean milliseconds of one side on one workload; None when it was not timed."""
    samples = side_ns(measured, workload, side)
    mean = sum(samples) / len(samples) * 1e-6 if samples else None
    return mean if mean is not None and isfinite(mean) else None


def ratio(estimate: Estimate | None) -> dict[str, float] | None:
    """An estimate as a plain speedup with its interval."""
    if estimate is None:
        return None
    return {"speedup": exp(estimate.gain), "low": exp(estimate.low), "high": exp(estimate.high)}


@dataclass(frozen=True)
class Subject:
    """What a ``bench.json`` is of."""

    options: Options
    spec: TaskSpec
    signature: str
    file: str
    total_bytes: int | None


def bench(subject: Subject, measured: Measurement, side: str, decision: Decision | None = None) -> dict[str, Any]:
    """``bench.json`` of one side of a measurement, on the user's own shape, with the other scales beside it."""
    options, spec = subject.options, subject.spec
    full = spec.workloads[-1]
    failed = measured.outcome is not Outcome.MEASURED
    kernel = stats_of(side_ns(measured, full.name, side))
    build = measured.base_build if side == "base" else measured.candidate_build
    worst = {check.workload: check.worst for check in measured.checks}
    tolerance = spec.tolerance_of("default")
    return {
        "solution_file": subject.file,
        "backend": options.language,
        "ref_file": str(options.ref),
        "dims": full.dims,
        "workload": {"requested_dims": full.dims, "realized_dims": full.dims, "scale": "large", "downscaled": False},
        "warmup": options.warmup,
        "repeat": options.repeat,
        "gpu_index": options.gpu,
        "gpu_name": measured.device.name if measured.device else "",
        "arch": " ".join(build.flags) if build else "",
        "seed": options.seed,
        "artifact_manifest": build.artifact if build else "",
        "numerics_mode": options.numerics_mode,
        "signature": subject.signature,
        "total_ptr_bytes": subject.total_bytes,
        "correctness": {
            "checked": bool(measured.checks),
            "passed": measured.outcome is Outcome.MEASURED and all(one <= 1.0 for one in worst.values()),
            "atol": tolerance.atol,
            "rtol": tolerance.rtol,
            "worst_share_of_tolerance": worst,
            "outputs_compared": {check.workload: check.checks for check in measured.checks},
            "seeds": "drawn from the operating system for every launch; timed launches are checked as well",
        },
        "contract": "pass" if measured.outcome is not Outcome.TAMPERED else "fail",
        "states": states_of(measured),
        "kernel": kernel,
        "reference": {"measured": False, "why": "the reference decides what is right; nobody waits for its speed"},
        "speedup_vs_reference": None,
        "kernel_only_ms": kernel.get("average_ms"),
        "end_to_end_ms": None,
        "end_to_end": {"measured": False, "regimes": {name: dict(one) for name, one in measured.regimes.items()}},
        "scales": {
            one.name: {"dims": one.dims, "weight": one.weight, **stats_of(side_ns(measured, one.name, side))}
            for one in spec.workloads
        },
        "decision": decision.model_dump(mode="json") if decision else None,
        "launching": measured.launching,
        "error": {"code": measured.outcome.value, "stage": "judge", "message": measured.detail} if failed else None,
    }


def methods(
    number: int,
    options: Options,
    plans: Sequence[Plan],
    variants: Sequence[Variant],
    budget: Mapping[str, int],
) -> dict[str, Any]:
    """``methods.json``: the methods of an iteration, why they were chosen, and what was passed over.

    The first one is every branch's own; further ones are on top of it in the last branches.
    """
    used = [axis_of(card_named(plan.technique)) for plan in plans]
    left = {axis: most - used.count(axis) for axis, most in budget.items() if most > used.count(axis)}
    return {
        "iter": number,
        "archetype": options.archetype,
        "numerics_mode": options.numerics_mode,
        "unfilled_budget": dict.fromkeys(left, _UNFILLED) if len(plans) < sum(budget.values()) else {},
        "methods": [_method(plan) for plan in plans],
        "variants": [variant.parameters for variant in variants],
    }


def _method(plan: Plan) -> dict[str, Any]:
    card = card_named(plan.technique)
    axis = axis_of(card)
    return {
        "id": f"{axis}.{plan.technique}",
        "name": card.title if card else plan.technique,
        "axis": axis,
        "priority": priority_of(card),
        "skipped_higher": [
            {"id": one.name, "priority": priority_of(None), "reason": f"{one.kind.value}: {one.reason}"}
            for one in plan.passed_over
        ],
        "description": plan.change,
        "evidence": [{"kind": "plan", "status": "claimed", "detail": plan.evidence}],
        "ncu_evidence": [],
        "expected_metric_shift": plan.mechanism,
        "expected_speedup": exp(plan.expected_gain),
        "disproof": plan.disproof,
        "semantic_policy": effect_of(plan),
    }


def axis_of(card: Card | None) -> str:
    """The axis that a card works on: its category where that is one, else the first of its cells."""
    if card is None:
        return "unknown"
    positions = [position.value for position, _ in card.cells]
    return _AXES.get(card.category) or next((_BY_POSITION[one] for one in positions if one in _BY_POSITION), "compute")


_BY_POSITION = {"bandwidth": "memory", "compute": "compute", "latency": "latency", "occupancy": "latency"}


def priority_of(card: Card | None) -> int:
    """A card's place in the catalog, from 1 on, by expected gain; 0 for what no card describes."""
    ranked = sorted(all_cards(), key=lambda one: (-one.expected_gain, one.name))
    return ranked.index(card) + 1 if card in ranked else 0
