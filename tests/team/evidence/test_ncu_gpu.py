"""On a GPU: three kernels whose limits are known stand where they should, by counters or, without them, by times."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.messages import Position, ProfileReport
from team.devices import discover
from team.devices.cuda import CudaDevice
from team.devices.lock import exclusive
from team.evidence.axes import widest
from team.evidence.gpu import profile_kernel
from team.evidence.ncu import NcuFailed, find_ncu, read_page, read_report
from team.evidence.profile import Place, measured
from team.evidence.reports import profiles_of
from team.evidence.subject import Tools, permission
from team.judge.client import Judge
from team.judge.kernels import KernelShop
from team.judge.request import Check
from team.report.profile_view import distance, metric_value

KERNELS = Path(__file__).parent / "kernels"
EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = ("naive", "memory_bound", "tensor_core")
log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """The first idle GPU."""
    found = discover("cuda", 1)[0]
    assert isinstance(found, CudaDevice)
    return found


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all."""
    return tmp_path_factory.mktemp("profiling")


@pytest.fixture
def shop(device: CudaDevice, scratch: Path) -> Iterator[KernelShop]:
    """Builds for the GPU, which is held: profiling must not ask for it a second time."""
    with exclusive(device.id, 10.0):
        made = KernelShop(device, scratch)
        yield made
        made.close()


def profiled(name: str, shop: KernelShop, device: CudaDevice, scratch: Path) -> ProfileReport:
    """One of the kernels, profiled; what a person would look at is logged."""
    task = shop.task(KERNELS / name)
    kernel = shop.kernel(task, KERNELS / name, "candidate").artifact
    report = profile_kernel(task, kernel, Tools(device, shop.host, shop.native), name, scratch / "keep")
    shown(report)
    return report


def shown(report: ProfileReport) -> None:
    log.info("%s: %s, %s, by %s; gaps %s", report.commit, report.position, report.level, report.tool, report.gaps)
    for line in report.rooflines:
        log.info("  %s: %.1f us, %s", line.workload, line.time_ns / 1e3, distance(line))
    for one in report.kernels:
        log.info("  launch %s grid %s block %s: %s ns", one.name, one.grid, one.block, one.duration_ns)
    for axis, readings in report.top.items():
        log.info("  %s: %s", axis, ", ".join(f"{one.metric} {metric_value(one)} ({one.source})" for one in readings))
    for remark in (*report.remarks, report.claim):
        log.info("  %s", remark)


def counters(device: CudaDevice, shop: KernelShop, room: Path) -> str:
    """The profiler's path; the test is skipped where it may not read counters."""
    try:
        ncu = find_ncu()
        allowed = permission(Tools(device, shop.host, shop.native), ncu, room)
    except NcuFailed as failed:
        pytest.skip(f"no counters here: {failed.what}")
    log.info("counters are readable with %s; confined: %s", ncu, allowed.confined)
    return ncu


@pytest.mark.gpu
def test_the_kernels_are_right(device: CudaDevice, scratch: Path) -> None:
    with Judge(device, scratch) as judge:
        for name in NAMES:
            found = judge.check(Check(task=str(KERNELS / name), tree=str(KERNELS / name)))
            assert found.outcome.value == "measured", f"{name}: {found.detail}"
            log.info("%s is right: %s", name, [(one.workload, one.worst) for one in found.checks])


@pytest.mark.gpu
def test_a_naive_kernel_leaves_all_axes_unused(
    device: CudaDevice, shop: KernelShop, scratch: Path, tmp_path: Path
) -> None:
    counters(device, shop, tmp_path)
    report = profiled("naive", shop, device, scratch)
    assert (report.level, report.position) == ("counters", Position.OCCUPANCY)
    assert report.top["latency"][0].metric == "stall_long_scoreboard"
    assert report.top["latency"][0].value > 0.5
    assert report.gaps.compute is not None
    assert report.gaps.compute > 0.6
    assert report.rooflines[0].share is not None
    assert report.rooflines[0].share < 0.4
    assert not report.near_peak


@pytest.mark.gpu
def test_a_copying_kernel_stands_at_the_memory_roof(
    device: CudaDevice, shop: KernelShop, scratch: Path, tmp_path: Path
) -> None:
    counters(device, shop, tmp_path)
    report = profiled("memory_bound", shop, device, scratch)
    assert (report.level, report.position) == ("counters", Position.BANDWIDTH)
    assert report.metrics["dram_throughput"] > 0.7
    assert report.rooflines[0].roof == "memory"
    assert report.rooflines[0].share is not None
    assert 0.7 < report.rooflines[0].share < 1.15
    assert widest(report.gaps) != "memory"


@pytest.mark.gpu
def test_a_tensor_core_kernel_stands_at_the_compute_roof(
    device: CudaDevice, shop: KernelShop, scratch: Path, tmp_path: Path
) -> None:
    counters(device, shop, tmp_path)
    report = profiled("tensor_core", shop, device, scratch)
    assert (report.level, report.position) == ("counters", Position.COMPUTE)
    assert report.metrics["tensor_pipe"] > 0.6
    assert report.top["compute"][0].metric == "tensor_pipe"
    assert report.rooflines[0].roof == "compute"
    assert report.rooflines[0].share is not None
    assert report.rooflines[0].share > 0.5


@pytest.mark.gpu
def test_a_kept_report_is_read_alike_by_both_readers_and_holds_what_was_asked(
    device: CudaDevice, shop: KernelShop, scratch: Path, tmp_path: Path
) -> None:
    ncu = counters(device, shop, tmp_path)
    kept = scratch / "keep" / "memory_bound.ncu-rep"
    if not kept.is_file():
        profiled("memory_bound", shop, device, scratch)
    environment = Tools(device, shop.host, shop.native).environment(tmp_path)
    page, read = read_page(ncu, kept, environment), read_report(ncu, kept, environment)
    (first,), (second,) = profiles_of(page), profiles_of(read)
    assert first.duration_ns == pytest.approx(second.duration_ns, rel=0.01)
    assert set(first.metrics) == set(second.metrics)
    for name, value in first.metrics.items():
        assert second.metrics[name] == pytest.approx(value, rel=0.02, abs=0.01), name
    log.info("%d metrics, read alike: %s", len(first.metrics), sorted(first.metrics))
    assert len(first.metrics) > 25


@pytest.mark.gpu
def test_a_denied_profiler_leaves_times(
    device: CudaDevice, shop: KernelShop, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = tmp_path / "ncu"
    denied.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'\nexit 1\n")
    denied.chmod(0o755)
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_ncu() == str(denied)
    report = profiled("memory_bound", shop, device, scratch)
    assert (report.level, report.position, report.kernels) == ("timing", Position.UNKNOWN, ())
    assert report.rooflines[0].share is not None
    assert "ERR_NVGPUCTRPERM" in " ".join(report.remarks)


@pytest.mark.gpu
def test_a_triton_kernel_is_profiled_as_it_is_judged(device: CudaDevice, scratch: Path) -> None:
    pytest.importorskip("triton")
    folder = EXAMPLES / "softmax_triton"
    answer = measured(Place(device, scratch, scratch / "keep"), folder, folder, "triton")
    assert answer.report is not None, answer.why
    shown(answer.report)
    assert answer.report.level in ("counters", "timing")
    assert answer.report.rooflines
    assert answer.report.sass or shutil.which("cuobjdump") is None
