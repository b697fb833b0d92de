"""The profile of a kernel on a GPU: times of every workload, counters of one, and a claim no larger than they carry."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from protocol.messages import KernelProfile, ProfileReport, Roofline
from protocol.profiling import DRAM, OCCUPANCY, SM, position_of
from team.devices.peaks import keep_peaks, known_peaks
from team.evidence.axes import gaps_of
from team.evidence.metrics import DURATION, REGISTERS, Bundle
from team.evidence.ncu import Collected, NcuFailed, collect_adaptively, find_ncu, installed
from team.evidence.readings import top
from team.evidence.reports import profiles_of
from team.evidence.roofline import is_near_peak, roofline
from team.evidence.subject import Tools, permission, timed, write_plan
from team.judge.artifact import Artifact
from team.tasks.spec import Workload
from team.tasks.task import Task

NCU_NUM = 5  # metrics per axis that are put first
MOST_KERNELS = 16  # launches of one call in a report; the profiler's own file has all
TIMES = "times are the median of single calls from a cold L2, between two events each"
_BESIDE = (DURATION, SM, DRAM, OCCUPANCY, REGISTERS)
_REMARKS = 24


def profile_kernel(
    task: Task,
    kernel: Artifact,
    tools: Tools,
    commit: str,
    keep: Path,
    pinned: Bundle | Literal[""] = "",
    workload: str = "",
    most: int = NCU_NUM,
) -> ProfileReport:
    """Profile a built kernel that was found correct: one call on ``workload``, by default the one that counts most.

    ``pinned``: the campaign's set; without one, calls of at least 10 ms get the light set. ``keep``: a folder for the
    profiler's own report. What fails becomes a remark and lowers the level of the claim; no number stands in for it.
    """
    with tempfile.TemporaryDirectory(prefix="kernelteam-profile-") as folder:
        profiling = Profiling(task, kernel, tools, Path(folder))
        profiling.find_profiler()
        for one in task.workloads:
            profiling.time(one)
        chosen = _chosen(task, workload, profiling.times)
        if profiling.ncu:
            bundle = pinned or _set(task, profiling.times.get(chosen.name))
            profiling.count(chosen, bundle, keep / f"{commit[:12]}.ncu-rep")
    rooflines = rooflines_of(task, profiling.times, peaks_of(tools))
    report = ProfileReport(
        commit=commit,
        tool="ptxas" if task.spec.contract == "solve" else "cuobjdump",
        remarks=(*profiling.remarks, *kernel.build.remarks)[:_REMARKS],
        claim="the assembler's report stands in for a profile: it does not say what limits time",
        workload=chosen.name,
        rooflines=rooflines,
        near_peak=len(rooflines) == len(task.workloads) and is_near_peak(rooflines, task.spec.policy),
    )
    if profiling.collected is not None:
        return with_counters(report, profiling.collected, task, most)
    return with_times(report) if rooflines else report


def peaks_of(tools: Tools) -> dict[str, float]:
    """The measured roofs of the device; measured now when they are not known yet (about a second, 2 GiB)."""
    if not known_peaks(tools.device.id):
        from team.judge.cuda.roofs import measure_roofs

        tools.device.pin()
        keep_peaks(tools.device.id, measure_roofs())
    return known_peaks(tools.device.id)


def rooflines_of(task: Task, times: Mapping[str, float], peaks: Mapping[str, float]) -> tuple[Roofline, ...]:
    """One per workload that was timed (nanoseconds per call)."""
    dtype = task.outputs[0].parameter.dtype
    there = [one for one in task.workloads if one.name in times]
    return tuple(roofline(one.name, times[one.name], task.floor(one), peaks, dtype) for one in there)


@dataclass
class Profiling:
    """One kernel under the tools of one GPU: what was seen so far, and in words what could not be."""

    task: Task
    kernel: Artifact
    tools: Tools
    room: Path
    ncu: str = ""
    confined: bool = True
    times: dict[str, float] = field(default_factory=dict[str, float])
    remarks: list[str] = field(default_factory=list[str])
    collected: Collected | None = None

    def find_profiler(self) -> None:
        """Learn whether counters can be read here, and under which confinement."""
        try:
            ncu = find_ncu()
            self.confined = permission(self.tools, ncu, self.room).confined
        except NcuFailed as failed:
            self.remarks.append(f"no counters: {failed.what}")
            return
        self.ncu = ncu
        if not self.confined:
            self.remarks.append("the profiler does not work with the sandbox here: the kernel was not confined in it")

    def time(self, workload: Workload) -> None:
        """Time calls on one workload, always confined."""
        try:
            command = self.tools.confined(self._command(workload), "time", self.room, self.ncu)
            self.times[workload.name] = timed(command, self.tools.environment(self.room), self.room)
        except NcuFailed as failed:
            self.remarks.append(f"{workload.name} was not timed: {failed.what}")

    def count(self, workload: Workload, bundle: Bundle, file: Path) -> None:
        """Read counters of one call."""
        command, environment = self._command(workload), self.tools.environment(self.room)
        if self.confined:
            program = self.tools.confined(command, "profile", self.room, self.ncu)
        else:
            program = self.tools.open(command, "profile")
        known = self._known(environment)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            collected = collect_adaptively(self.ncu, program, bundle, known, file, environment)
        except NcuFailed as failed:
            self.remarks.append(f"no counters: {failed.what}")
            return
        self.collected = collected
        self.remarks += collected.attempts
        if known and collected.unknown:
            self.remarks.append(f"this profiler does not know on this chip: {', '.join(collected.unknown)}")

    def _command(self, workload: Workload) -> list[str]:
        return self.tools.command(self.kernel, self.task.signature, write_plan(self.task, workload, self.room))

    def _known(self, environment: Mapping[str, str]) -> frozenset[str]:
        try:
            return installed(self.ncu, environment, self.room)
        except NcuFailed as failed:
            self.remarks.append(f"the profiler does not list its metrics ({failed.what}): its own sections must do")
            return frozenset()


def with_counters(report: ProfileReport, collected: Collected, task: Task, most: int) -> ProfileReport:
    """The report with what the counters say; position and gaps are those of the longest launch."""
    subject, *others = profiles_of(collected.launches)
    shown = (subject, *(_brief(one) for one in others[: MOST_KERNELS - 1]))
    hidden = len(others) + 1 - len(shown)
    more = (f"{hidden} further, shorter launches are in the profiler's own report",) if hidden else ()
    modelled = report.rooflines and all(one.mode == "workload_model" for one in report.rooflines)
    gap = "" if modelled else "; without a workload model and roofs, gaps are a heuristic of bottlenecks"
    which = f"the longest of {len(others) + 1} kernels" if others else "its one kernel"
    update = {
        "tool": f"ncu, {collected.bundle} set",
        "level": "counters",
        "position": position_of(subject.metrics, task.spec.policy),
        "metrics": subject.metrics,
        "kernels": shown,
        "top": top(subject.readings, most),
        "gaps": gaps_of(subject.metrics),
        "bundle": collected.bundle,
        "file": str(collected.file),
        "remarks": (*more, *report.remarks)[:_REMARKS],
        "claim": f"hardware counters of one call on {report.workload}, of {which}; {TIMES}{gap}",
    }
    return report.model_copy(update=update)


def with_times(report: ProfileReport) -> ProfileReport:
    """The report where counters could not be read: no position and no gaps."""
    claim = f"without counters: {TIMES}; they say how far a workload is from the measured roofs, not what holds it up"
    return report.model_copy(update={"level": "timing", "tool": "CUDA events", "claim": claim})


def _chosen(task: Task, name: str, times: Mapping[str, float]) -> Workload:
    """The workload that is named, or the one with the largest weighted time, or the first."""
    named = next((one for one in task.workloads if one.name == name), None)
    return named or max(task.workloads, key=lambda one: one.weight * times.get(one.name, 0.0))


def _set(task: Task, took_ns: float | None) -> Bundle:
    short = took_ns is None or took_ns < task.spec.policy.full_profile_below_ms * 1e6
    return "full" if short else "light"


def _brief(kernel: KernelProfile) -> KernelProfile:
    """A launch beside the subject: what places it."""
    return kernel.model_copy(update={"readings": tuple(one for one in kernel.readings if one.metric in _BESIDE)})
