"""The judge by hand on kernels as they stand: ``kernelteam eval TASK ...``. One warm judge serves them all.

Fresh processes and inputs. A kernel is timed by the calibration of a campaign, which also tells the noise floor, or,
where that is not asked for, by a comparison with itself, in a tenth of the time. Nothing is written but a scratch
folder that goes away.
"""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from protocol.messages import Measurement, Outcome, WorkloadCheck
from protocol.two_level import trimmed_location
from team.devices import discover, has_gpu
from team.errors import UserError
from team.judge.client import Judge
from team.judge.failures import JudgeDied
from team.judge.request import Calibrate, Check, Compare
from team.tasks.spec import TaskSpec, read_spec

ERROR = 0.025  # at each end of an interval


@dataclass(frozen=True)
class OnWorkload:
    """How many outputs were compared, the worst error as a share of its tolerance, and what one launch takes: low,
    estimate and high of a 95 % interval over processes (nanoseconds); None where nothing could be timed."""

    checks: int
    worst: float
    nanoseconds: tuple[float, float, float] | None


@dataclass(frozen=True)
class Standing:
    """A kernel that is right on every workload; ``floor`` is the A/A noise floor, None where it was not measured."""

    task: str
    source: str
    device: str
    workloads: dict[str, OnWorkload]
    floor: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def render(self) -> RenderableType:
        """For a terminal."""
        timed = any(one.nanoseconds for one in self.workloads.values())
        named = ("time per launch", "95 % interval") if timed else ("outputs compared",)
        table = Table("workload", *named, "worst error / tolerance", box=None)
        for name, one in self.workloads.items():
            shown = (str(one.checks),)
            if one.nanoseconds:
                low, middle, high = (f"{value / 1e3:,.1f}" for value in one.nanoseconds)
                shown = (f"{middle} us", f"[{low}, {high}]")
            table.add_row(name, *shown, f"{one.worst:.3f}")
        how = f"on {self.device}" if timed else "by Triton's interpreter; its speed needs a GPU"
        noise = "" if self.floor is None else f"; A/A noise floor {self.floor:.2%}"
        return Group(f"{self.task}: {self.source}", table, f"correct on {len(self.workloads)} workloads {how}{noise}")


@dataclass(frozen=True)
class Refused:
    """A task whose kernel is not fit to start from, and why."""

    folder: Path
    error: UserError

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"task": self.folder.name, "refused": str(self.error)}


class _Judges:
    """A judge for each kind of device, started when it is first needed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._known: dict[str, tuple[Judge, str]] = {}

    def of(self, kind: str) -> tuple[Judge, str]:
        """A running one, and its device's name."""
        if kind not in self._known:
            device = discover(kind, 1)[0]
            scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelteam-judge-"))
            self._known[kind] = self._stack.enter_context(Judge(device, Path(scratch))), device.id
        found, name = self._known[kind]
        if found.pid is None:  # it died of the task before this one
            found.start()
        return found, name


def standings(folders: Sequence[Path], quick: bool) -> Generator[Standing | Refused, None, None]:
    """What is found of each task's kernel, one after the other. ``quick``: timed without the noise floor."""
    with ExitStack() as stack:
        judges = _Judges(stack)
        for folder in folders:
            try:
                yield _standing(folder.resolve(), read_spec(folder), judges, quick)
            except UserError as error:
                yield Refused(folder, error)
            except JudgeDied as died:
                yield Refused(folder, UserError(f"The judge died: {died.what}", "Try again; kernelteam doctor helps."))


def _standing(folder: Path, spec: TaskSpec, judges: _Judges, quick: bool) -> Standing:
    interpreted = spec.contract == "triton" and not has_gpu()
    judge, device = judges.of("cpu" if interpreted else spec.device)
    place, floor, times = str(folder), None, {}
    if interpreted:
        measured = judge.check(Check(task=place, tree=place))
    elif quick:
        measured = judge.compare(Compare(task=place, base=place, candidate=place, noise=None))
    else:
        noise, measured, _ = judge.calibrate(Calibrate(task=place, base=place))
        floor = noise.floor
    if measured.outcome is not Outcome.MEASURED:
        raise UserError(f"{spec.source} is not right ({measured.outcome.value}). {measured.detail}", "Mend the kernel.")
    if not interpreted:
        times = times_of(measured)
    return Standing(spec.name, spec.source, device, _by_workload(measured.checks, times), floor)


def _by_workload(
    checks: Sequence[WorkloadCheck], times: dict[str, tuple[float, float, float]]
) -> dict[str, OnWorkload]:
    return {one.workload: OnWorkload(one.checks, one.worst, times.get(one.workload)) for one in checks}


def times_of(measured: Measurement) -> dict[str, tuple[float, float, float]]:
    """Nanoseconds per launch by workload, both sides being the same kernel: every process gives one value, the mean
    logarithm of its samples; of these the trimmed mean with its interval."""
    found: dict[str, tuple[float, float, float]] = {}
    for name in measured.restarts[0].pairs if measured.restarts else ():
        values = [
            fmean(map(log, column))
            for pairs in (restart.pairs[name] for restart in measured.restarts)
            for column in (pairs.base_ns, pairs.candidate_ns)
        ]
        centre = trimmed_location(np.array(values))
        low, high = (exp(float(centre.bound(ERROR, side))) for side in (-1, 1))
        found[name] = low, exp(float(centre.centre)), high
    return found
