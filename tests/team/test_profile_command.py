"""``kernelteam profile`` on a machine without counters: times, rooflines, remarks; wrong input is one sentence."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from protocol.messages import AxisGaps, KernelProfile, Position, ProfileReport, Reading, Roofline
from protocol.state import CampaignState
from team.cli import app
from team.errors import UserError
from team.evidence import counters
from team.evidence.counters import counted
from team.evidence.perf import ratios
from team.profiling import pinned_set, profile_commit
from team.report.profile_view import render_profile

EXAMPLE = Path(__file__).parents[2] / "examples" / "rmsnorm_cpu"
PERF = """\
1200300,,cycles:u,512334,100.00,,
2400600,,instructions:u,512334,100.00,,
<not supported>,,cache-references:u,0,100.00,,
77,,cache-misses:u,512334,100.00,,
"""


def drawn(report: ProfileReport) -> str:
    from rich.console import Console

    console = Console(width=180, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render_profile(report, "GPU-x"))
    return console.export_text()


def test_perf_is_read_and_what_it_did_not_count_is_left_out() -> None:
    counts = counted(PERF)
    assert counts == {"cycles": 1200300.0, "instructions": 2400600.0, "cache-misses": 77.0}
    assert ratios(counts) == {"ipc": pytest.approx(2.0)}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo '<not supported>,,cycles:u,0,100.00,,' >&2", "not supported"),
        ("echo 'Access to performance monitoring is limited' >&2; exit 255", "not permitted"),
        ("echo '123,,cycles:u,9,100.00,,' >&2", ""),
    ],
)
def test_counters_that_are_not_to_be_had_are_one_sentence(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "perf").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    counters.missing_counters.cache_clear()
    said = counters.missing_counters()
    counters.missing_counters.cache_clear()
    assert (words in said) if words else not said


@pytest.mark.slow
def test_a_cpu_kernel_is_timed_and_its_compiler_heard() -> None:
    done = CliRunner().invoke(app, ["profile", str(EXAMPLE), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["level"] in ("timing", "counters")
    assert [line["workload"] for line in said["rooflines"]] == ["256x1024", "64x4096", "1024x128", "odd-193x517"]
    assert all(line["share"] > 0.0 for line in said["rooflines"])
    assert "stand in" in said["claim"]
    assert any("vectorized" in remark for remark in said["remarks"])


@pytest.mark.slow
def test_where_the_cpu_counts_its_counters_are_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = "".join(f"echo '{line}' >&2\n" for line in PERF.splitlines())
    (tmp_path / "perf").write_text(
        f'#!/bin/sh\nwhile [ "$1" != -- ] && [ "$1" != true ]; do shift; done\n"$@"\n{counts}'
    )
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = profile_commit(str(EXAMPLE), EXAMPLE, None, "", 5).report
    assert found.level == "counters"
    assert found.metrics["ipc"] == pytest.approx(2.0)
    assert "counters of the whole program" in found.claim
    assert len(found.rooflines) == 4
    assert found.position is Position.UNKNOWN


def test_an_unknown_workload_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"no workload 'tiny'\. Choose one of: 256x1024"):
        profile_commit(str(EXAMPLE), EXAMPLE, None, "tiny", 5)


def test_the_view_shows_every_launch_and_claims_no_more_than_it_has() -> None:
    subject = KernelProfile(
        name="row_sum\x1b[31m",
        grid="(1, 1, 1)",
        duration_ns=34592.0,
        readings=(Reading(metric="sm_throughput", source="sm__throughput.avg", value=0.18, unit="share"),),
    )
    report = ProfileReport(
        commit="c" * 40,
        tool="ncu, full set",
        position=Position.BANDWIDTH,
        level="counters",
        workload="w",
        kernels=(subject, KernelProfile(name="zero", duration_ns=4096.0)),
        top={"compute": subject.readings},
        gaps=AxisGaps(compute=0.82),
        rooflines=(
            Roofline(
                workload="w", mode="workload_model", time_ns=2e3, flops=1e9, bytes_min=1e6, roof="memory", floor_ns=1e3
            ),
            Roofline(workload="blind", mode="bottleneck_gap_heuristic", time_ns=2e3),
        ),
        sass={"row_sum": {"FADD": 12, "LDG.E": 4}},
        remarks=("no counters of something",),
    )
    text = drawn(report)
    for words in ("bandwidth", "34.59 us", "zero", "50.0 % of the memory roof", "a heuristic of gaps only", "18.0 %"):
        assert words in text
    assert "compute 82 %" in text
    assert "memory 0 %" not in text
    assert "FADD 12" in text
    assert "\x1b[31m" not in text


def test_a_campaigns_profiles_keep_to_one_set() -> None:
    state = CampaignState()
    assert pinned_set(state) == ""
    state.main_profile = ProfileReport(commit="c", tool="ncu, light set", bundle="light")
    assert pinned_set(state) == "light"
