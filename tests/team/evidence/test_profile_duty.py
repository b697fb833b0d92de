"""The profile duty: its process answers or is ended, and the report that remains says why; minds are told all of it."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from protocol.messages import AxisGaps, KernelProfile, Profile, ProfileReport, Reading, Roofline
from protocol.policy import Policy
from roles.prompts.profiled import in_full, in_short
from team.devices import discover
from team.devices.device import Device
from team.duties import perform_profile
from team.evidence import profile as duty
from team.evidence.profile import Place, Request, measured, profile

EXAMPLE = Path(__file__).parents[3] / "examples" / "rmsnorm_cpu"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(discover("cpu", 1)[0], tmp_path / "scratch", tmp_path / "keep")


def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """Put a script in the worker's place."""
    script = tmp_path / "worker"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


def test_a_cpu_that_counts_nothing_leaves_the_compiler_and_one_sentence(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty, "missing_counters", lambda: "perf is not installed, so remarks stand in")
    report = profile(EXAMPLE, EXAMPLE, "abc", place)
    assert (report.level, report.remarks[0]) == ("compiler", "perf is not installed, so remarks stand in")
    assert report.metrics["loops_vectorised"] > 0
    assert not place.scratch.exists()


def test_a_worker_that_dies_is_said_to_have_died_in_its_own_words(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(monkeypatch, tmp_path, "echo no module named torch >&2; exit 3")
    monkeypatch.setattr(duty, "missing_counters", lambda: "")
    report = profile(EXAMPLE, EXAMPLE, "abc", place)
    assert report.level == "compiler"
    assert "left with status 3: no module named torch" in report.remarks[0]


def test_a_worker_that_never_ends_is_ended(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker(monkeypatch, tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    monkeypatch.setattr(duty, "WORKER_S", 0.5)
    answer = measured(place, EXAMPLE, EXAMPLE, "abc")
    assert answer.report is None
    assert "did not end within 0.5 s" in answer.why
    pids = tmp_path / "pid"  # not there when it was ended before it said a word
    assert not pids.exists() or not Path(f"/proc/{pids.read_text().strip() or 'none'}").exists()


@dataclass
class Lead:
    """A coordinator whose campaign has been profiled with one set."""

    bundle: str

    def chronicle(self) -> "Lead":
        return self

    @property
    def profile(self) -> ProfileReport:
        return ProfileReport(commit="c", tool="ncu", bundle=self.bundle)


@dataclass
class Table:
    """As much of an agent's desk as profiling needs."""

    device: Device
    snapshots: Path
    lead: Lead
    trusted: Path = EXAMPLE
    policy: Policy = field(default_factory=Policy)

    def snapshot(self, _commit: str) -> str:
        return str(EXAMPLE)


def test_a_duty_asks_for_the_set_of_the_campaigns_first_profile_under_the_campaigns_law(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(monkeypatch, tmp_path, f'cp "$3" {tmp_path}/asked; exit 1')
    monkeypatch.setattr(duty, "missing_counters", lambda: "")
    policy = Policy(full_profile_below_ms=3.0)
    table: Any = Table(place.device, tmp_path / "agent" / "snapshots", Lead("light"), policy=policy)
    reported = perform_profile(table, Profile(id="p1", commit="abc"))
    asked = Request.model_validate_json((tmp_path / "asked").read_text())
    assert (asked.pinned, asked.law, asked.commit) == ("light", policy, "abc")
    assert asked.scratch == str(tmp_path / "agent")
    assert (reported.duty, reported.report.level) == ("p1", "compiler")


@pytest.mark.slow
def test_a_tree_that_does_not_build_is_an_answer(place: Place, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "rmsnorm.cpp").write_text("this is no C++\n")
    answer = measured(place, EXAMPLE, tmp_path / "tree", "abc")
    assert answer.report is None
    assert answer.why


def test_a_mind_is_told_the_top_of_each_axis_the_roofs_and_what_is_unknown() -> None:
    stall = Reading(metric="stall_barrier", source="smsp__x", value=0.61, unit="share")
    report = ProfileReport(
        commit="c" * 40,
        tool="ncu, full set",
        metrics={"stall_barrier": 0.61, "ipc": 0.4},
        top={"latency": (stall,)},
        gaps=AxisGaps(latency=0.61),
        rooflines=(
            Roofline(workload="w", mode="workload_model", time_ns=2000.0, roof="memory", floor_ns=500.0),
            Roofline(workload="v", mode="bottleneck_gap_heuristic", time_ns=2000.0),
        ),
        kernels=(KernelProfile(name="a", duration_ns=10.0), KernelProfile(name="b")),
        sass={"a": {"BAR.SYNC": 9}},
        claim="counters of one call",
    )
    short = "\n".join(in_short(report))
    assert "stall_barrier 0.61" in short
    assert "ipc" not in short
    assert "25.0% of the memory roof" in short
    assert "no model or roof" in short
    assert "an axis that is not named is unknown" in short
    assert "one call launches 2 kernels" in short
    assert "BAR.SYNC 9" in "\n".join(in_full(report))
    assert "no figures" in next(in_short(ProfileReport(commit="c", tool="none")))
