"""The way of a campaign under the roofs: what every workload took at the baseline and after each landing.

Operations and bytes are those of the task's model, so a workload keeps its intensity and only rises.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from protocol import events as ev
from protocol.messages import DeviceInfo, Estimate, Roofline
from team.evidence.roofline import bandwidth_of, peak_of, peaks_for, roofline
from team.report.reading import Story


@dataclass(frozen=True)
class Roofs:
    """What one device can do, as measured: the slopes that workloads stand under, and the peak of ``dtype``."""

    device: str
    dtype: str
    slopes: dict[str, float]  # what moves the bytes -> bytes per second
    peak: float | None

    def under(self, intensity: float, slope: float) -> float:
        """Operations per second at an intensity under one of the slopes."""
        sloped = slope * intensity
        return sloped if self.peak is None else min(sloped, self.peak)


@dataclass(frozen=True)
class Step:
    """Where one workload stood once: at the baseline (number 0) or after experiment ``number`` landed."""

    number: int
    name: str
    line: Roofline


@dataclass(frozen=True)
class Way:
    """All workloads' steps on one device."""

    roofs: Roofs
    steps: dict[str, tuple[Step, ...]]


def way_of(story: Story) -> Way | None:
    """The way on the first device with measured roofs and a baseline; None without those or without a model."""
    problem = story.state.started.problem
    device = _device(story)
    if problem is None or device is None or not any(problem.floors.values()):
        return None
    dtype = next((one.dtype for one in problem.operands if one.role != "input"), "")
    steps: dict[str, tuple[Step, ...]] = {}
    slopes: dict[str, float] = {}
    for name, took in story.state.baselines[device.id].baseline_ns.items():
        model = problem.floors.get(name, {})
        peaks = peaks_for(device, model)
        those = _steps(story, name, took, model, peaks, dtype)
        if those[-1].line.share is not None:
            steps[name] = those
            slopes |= _slope(device, bandwidth_of(peaks))
    return Way(Roofs(device.id, dtype, slopes, peak_of(device.peaks, dtype)), steps)


def _slope(device: DeviceInfo, rate: float | None) -> dict[str, float]:
    """The roof that a rate of bytes makes, by what moves them."""
    if rate is None:
        return {}
    cached = device.kind == "cpu" and rate == device.peaks.get("cache_bytes_per_s")
    return {"first-level cache" if cached else "memory": rate}


def _device(story: Story) -> DeviceInfo | None:
    """The first device with a baseline on which roofs were measured, as it was seen last."""
    seen: dict[str, DeviceInfo] = {}
    for _, joined in story.of(ev.AgentJoined):
        seen[joined.device.id] = joined.device
    for _, baseline in story.of(ev.BaselineMeasured):
        if baseline.measurement.device is not None and baseline.measurement.device.peaks:
            seen[baseline.device] = baseline.measurement.device
    return next((seen[name] for name in story.state.baselines if name in seen and seen[name].peaks), None)


def _steps(
    story: Story, workload: str, took_ns: float, model: Mapping[str, float], peaks: Mapping[str, float], dtype: str
) -> tuple[Step, ...]:
    """The baseline, each landing by what its verification measured on this workload, and main where it was measured."""
    state, level = story.state, 0.0
    verified = {body.experiment: body.decision for _, body in story.of(ev.LandingMeasured) if body.decision}

    def at(gain: float) -> Roofline:
        return roofline(workload, took_ns / math.exp(max(-50.0, min(50.0, gain))), model, peaks, dtype)

    steps = [Step(0, "the baseline", at(0.0))]
    for landed in state.landed:
        decision = verified.get(landed.experiment)
        level += _gain(decision.workloads if decision else {}, workload, landed.gain)
        experiment = state.experiments[landed.experiment]
        technique = experiment.plan.technique if experiment.plan else "(no plan)"
        steps.append(Step(experiment.number, technique, at(level)))
    measured = next((one for one in reversed(state.main_measured) if one.estimate is not None), None)
    if measured is not None and measured.commit == state.main and workload in measured.workloads:
        last = steps[-1]
        steps[-1] = Step(last.number, last.name, at(measured.workloads[workload].gain))
    return tuple(steps)


def _gain(each: Mapping[str, Estimate], workload: str, otherwise: Estimate) -> float:
    found = each.get(workload, otherwise).gain
    return 0.0 if math.isnan(found) else found
