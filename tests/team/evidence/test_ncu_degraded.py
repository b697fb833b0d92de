"""Profiles where the profiler is denied, missing, slow or strange: the claim shrinks and no number is made up."""

import hashlib
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from protocol.messages import AxisGaps, Build, Position
from team.devices.lock import exclusive
from team.devices.peaks import keep_peaks
from team.evidence import ncu
from team.evidence.gpu import profile_kernel
from team.evidence.ncu import Kind, NcuFailed, collect, collect_adaptively, failure, find_ncu, installed
from team.evidence.subject import Tools
from team.judge.artifact import Artifact
from team.judge.build import Recipe
from team.tasks.task import Task, load_task

HERE = Path(__file__).parent
FAKE = str(HERE / "fake_ncu")
UUID = "GPU-fake"
TASK = """\
name = "scale"
contract = "solve"
device = "cuda"
source = "scale.cu"
reference = "reference.py"

[arguments]
x = { shape = ["n"] }
y = { shape = ["n"] }

[[workloads]]
name = "small"
dims = { n = 1024 }

[[workloads]]
name = "large"
dims = { n = 4096 }
"""
SOURCE = 'extern "C" void solve(const float* x, float* y, int n) {}\n'
REFERENCE = """\
def reference(x, y, n):
    y.copy_(x)


def workload_model(n):
    return {"flops": 0.0, "bytes_min": 8.0 * n}
"""
SUBJECT = """\
#!/bin/sh
# what the program around a kernel prints
echo "layers none"
echo "median_ns 40000.0"
"""


@dataclass(frozen=True)
class Card:
    """A GPU that is only a name."""

    id: str = UUID
    target: str = "90a"
    nodes: tuple[str, ...] = ("/dev/nvidia0",)


@dataclass
class Shelf:
    """A builder whose artifacts are all the same file."""

    path: Path
    built: list[str] = field(default_factory=list[str])

    def build(self, recipe: Recipe) -> Artifact:
        """The file."""
        self.built.append(recipe.main)
        return artifact(self.path)


def artifact(path: Path) -> Artifact:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    remarks = ("row_sum: 32 registers, 0 B shared, 0 B stack, 0 B spilled",)
    return Artifact(path, Build(compiler="none", flags=(), seconds=0.0, artifact=digest, remarks=remarks))


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = tmp_path / "task"
    folder.mkdir()
    for name, text in (("task.toml", TASK), ("scale.cu", SOURCE), ("reference.py", REFERENCE)):
        (folder / name).write_text(text)
    return load_task(folder)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Faked":
    """A GPU whose program is a script and whose profiler is the fake one, installed and logging."""
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    keep_peaks(UUID, {"copy_bytes_per_s": 1e12})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ncu").symlink_to(FAKE)
    subject = tmp_path / "subject"
    subject.write_text(SUBJECT)
    subject.chmod(subject.stat().st_mode | stat.S_IXUSR)
    shelf = Shelf(subject)
    return Faked(Card(), shelf, shelf, tmp_path / "log")  # type: ignore[arg-type]


@dataclass
class Faked(Tools):
    """Tools whose profiler learns its mood from the environment."""

    log: Path
    mood: str = ""

    def environment(self, room: Path) -> dict[str, str]:
        """See ``Tools``."""
        return super().environment(room) | {"FAKE_NCU": self.mood, "FAKE_NCU_LOG": str(self.log)}

    def asked(self) -> list[str]:
        """Command lines of the profiler's collections."""
        return self.log.read_text().splitlines()


def test_a_profile_has_every_launch_and_is_kept(task: Task, tools: Faked, tmp_path: Path) -> None:
    report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c" * 40, tmp_path / "keep")
    assert (report.level, report.position, report.bundle) == ("counters", Position.BANDWIDTH, "full")
    assert [one.duration_ns for one in report.kernels] == [34592.0, 4096.0]
    assert report.metrics == report.kernels[0].metrics
    assert report.gaps.compute == pytest.approx(1 - 0.1802)
    assert Path(report.file).read_bytes() == b"report"
    assert Path(report.file).parent == tmp_path / "keep"
    assert report.workload == "small"
    assert [one.share for one in report.rooflines] == pytest.approx(
        [8 * 1024 / 40000.0 / 1e3, 8 * 4096 / 40000.0 / 1e3]
    )
    assert any("does not know on this chip" in remark and "l2_hit_rate" in remark for remark in report.remarks)


def test_only_the_launches_of_one_call_are_profiled_and_clocks_are_left_alone(
    task: Task, tools: Faked, tmp_path: Path
) -> None:
    """The optimizer's skill profiled the first three launches: what filled its inputs (section 10, number 2)."""
    profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    probed, asked = tools.asked()
    assert "--profile-from-start off --clock-control none" in asked
    assert "--section MemoryWorkloadAnalysis" in asked
    assert "--section MemoryWorkloadAnalysis" not in probed
    assert asked.endswith("/dev/nvidia0")
    assert " profile " in asked


@pytest.mark.parametrize(
    ("mood", "words"),
    [("denied", "NVreg_RestrictProfilingToAdminUsers=0"), ("library", "LibraryNotLoaded"), ("empty", "no kernel")],
)
def test_without_counters_times_remain_and_nothing_is_invented(
    mood: str, words: str, task: Task, tools: Faked, tmp_path: Path
) -> None:
    """Listing metrics needs no permission, so it proves none (section 10, number 16)."""
    tools.mood = mood
    assert installed(FAKE, tools.environment(tmp_path), tmp_path)
    report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert (report.level, report.position, report.bundle, report.file) == ("timing", Position.UNKNOWN, "", "")
    assert (report.gaps, report.kernels, report.metrics) == (AxisGaps(), (), {})
    assert len(report.rooflines) == 2
    assert any(words in remark for remark in report.remarks)
    assert "not what holds it up" in report.claim


def test_without_a_profiler_it_is_the_same(
    task: Task, tools: Faked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(ncu, "PLACES", ())
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NcuFailed, match="comes with the CUDA toolkit"):
        find_ncu()
    report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert report.level == "timing"


def test_a_kernel_that_does_not_even_run_leaves_the_assemblers_word(task: Task, tools: Faked, tmp_path: Path) -> None:
    tools.mood = "denied"
    (tmp_path / "subject").write_text("#!/bin/sh\necho CUDA error cudaErrorIllegalAddress\nexit 3\n")
    report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert (report.level, report.rooflines) == ("compiler", ())
    assert any("small was not timed" in remark and "cudaErrorIllegalAddress" in remark for remark in report.remarks)
    assert any("32 registers" in remark for remark in report.remarks)


def test_a_set_that_breaks_the_program_is_tried_lighter_and_says_so(tools: Faked, tmp_path: Path) -> None:
    tools.mood = "breaks"
    file, environment = tmp_path / "r.ncu-rep", tools.environment(tmp_path)
    found = collect_adaptively(FAKE, ["subject"], "full", frozenset(), file, environment)
    assert found.bundle == "light"
    assert found.attempts == ("the full set failed: ncu left with status 9: ==ERROR== The application was killed",)


def test_a_set_that_takes_too_long_is_ended(tools: Faked, tmp_path: Path) -> None:
    tools.mood = "hangs"
    with pytest.raises(NcuFailed, match="did not end") as raised:
        collect(FAKE, ["s"], "full", frozenset(), tmp_path / "r.ncu-rep", tools.environment(tmp_path), timeout_s=0.3)
    assert raised.value.kind is Kind.TIMED_OUT


def test_a_denial_is_not_tried_again(tools: Faked, tmp_path: Path) -> None:
    tools.mood = "denied"
    with pytest.raises(NcuFailed) as raised:
        collect_adaptively(FAKE, ["s"], "full", frozenset(), tmp_path / "r.ncu-rep", tools.environment(tmp_path))
    assert raised.value.kind is Kind.DENIED
    assert len(tools.asked()) == 1


def test_profiling_under_the_holder_of_the_device_does_not_wait_for_it(
    task: Task, tools: Faked, tmp_path: Path
) -> None:
    """The optimizer's skill held a lock on the GPU and started a program that asked for it (section 10, number 1)."""
    with exclusive(UUID):
        report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert report.level == "counters"


def test_a_metric_that_is_refused_by_name_is_left_out_and_reported(tools: Faked, tmp_path: Path) -> None:
    tools.mood = "unknown"
    known = frozenset({"lts__t_sector_hit_rate", "sm__throughput"})
    found = collect(FAKE, ["s"], "full", known, tmp_path / "r.ncu-rep", tools.environment(tmp_path))
    assert "lts__t_sector_hit_rate.pct" in found.unknown
    assert len(found.launches) == 2
    assert "sm__throughput.avg" in tools.asked()[-1]


def test_whether_a_confined_program_can_be_profiled_is_tried_with_a_kernel_of_our_own(
    task: Task, tools: Faked, tmp_path: Path
) -> None:
    tools.mood = "sandboxed"
    report = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert report.level == "counters"
    assert any("was not confined" in remark for remark in report.remarks)
    confined, opened, candidate = tools.asked()
    assert confined.endswith("/dev/nvidia0")
    assert not opened.endswith("/dev/nvidia0")
    assert not candidate.endswith("/dev/nvidia0")
    profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert len(tools.asked()) == 4  # it is remembered, and tried no more


def test_long_calls_get_the_light_set_and_a_campaign_keeps_to_its_first(
    task: Task, tools: Faked, tmp_path: Path
) -> None:
    (tmp_path / "subject").write_text("#!/bin/sh\necho median_ns 20000000.0\n")
    long = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep")
    assert long.bundle == "light"
    pinned = profile_kernel(task, artifact(tmp_path / "subject"), tools, "c", tmp_path / "keep", pinned="full")
    assert pinned.bundle == "full"


def test_other_words_of_the_profiler_are_passed_on() -> None:
    failed = failure("==PROF== Connected\n==ERROR== The application returned an error code (139).\n", 9)
    assert failed.kind is Kind.FAILED
    assert "error code (139)" in failed.what
