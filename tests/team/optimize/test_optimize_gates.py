"""Gates, exit codes, flags, shapes and the state: everything of a run that needs no judge."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from optimizing import REF, SLOW_LOOP, plan, write_inputs
from typer.testing import CliRunner

from protocol.messages import Measurement, Outcome, Plan, Restart
from protocol.pairs import Pair
from team.cli import app
from team.errors import UserError
from team.optimize.artifacts import Folder, new_folder
from team.optimize.baseline import at_gate, policy_of, prepare
from team.optimize.command import _numbers
from team.optimize.gates import REASONS, Exit, Stopped, champion_reason, refuse_baseline, states_of
from team.optimize.hardware import hardware_gate
from team.optimize.iteration import close
from team.optimize.matrix import MatrixFile, read_matrix, workloads
from team.optimize.options import Options, notices
from team.optimize.records import average_ms, effect_of, stats_of
from team.optimize.session import Session
from team.optimize.state import State, Store, held, read_state
from team.optimize.strict import refuse_reordering
from team.tasks.skill import read_inputs
from team.tasks.skill_inputs import SkillInputs
from team.workspace.objects import Refused

ENVIRONMENT = {"hardware_attempts": 1, "gpus": []}


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference is read here: a process of its own for each test would load torch each time."""
    monkeypatch.setattr("team.optimize.baseline.read_apart", read_inputs)


def options(folder: Path, **more: Any) -> Options:
    write_inputs(folder, kernel=more.pop("kernel", SLOW_LOOP), ref=more.pop("ref_text", REF))
    given = {"baseline": folder / "scale.cpp", "ref": folder / "ref.py", "dims": {"n": 4096}, "law": None}
    return Options.model_validate({**given, **more})


# ---------------------------------------------------------------- gates


@pytest.mark.parametrize(
    ("outcome", "reason", "code"),
    [
        (Outcome.BUILD_FAILED, "baseline_compile_failed", 2),
        (Outcome.INCORRECT, "baseline_correctness_failed", 2),
        (Outcome.CRASHED, "baseline_timing_invalid", 2),
        (Outcome.TIMEOUT, "baseline_timing_invalid", 2),
        (Outcome.TAMPERED, "baseline_contract_failed", 4),
    ],
)
def test_what_a_baseline_fails_with_is_a_reason_and_a_code(outcome: Outcome, reason: str, code: int) -> None:
    with pytest.raises(Stopped) as caught:
        refuse_baseline(Measurement(outcome=outcome, detail="so it was"))
    assert (caught.value.reason, caught.value.exit_code) == (reason, code)
    told = caught.value.as_json(0)
    assert (told["next_iteration"], told["last_error"], told["exit_code"]) == (None, "so it was", code)


def test_every_reason_has_one_of_the_four_codes_and_a_champion_failure_is_one_of_them() -> None:
    assert set(REASONS.values()) == {Exit.KERNEL, Exit.HARDWARE, Exit.CONTRACT}
    failing = [one for one in Outcome if one is not Outcome.MEASURED]
    assert {champion_reason(Measurement(outcome=one)) for one in failing} <= set(REASONS)
    assert champion_reason(Measurement(outcome=Outcome.MEASURED)) == ""


def test_what_was_not_looked_at_is_not_passed() -> None:
    failed = states_of(Measurement(outcome=Outcome.INCORRECT))
    assert (failed["compile_pass"], failed["correctness_pass"], failed["timing_valid"]) == (
        "pass",
        "fail",
        "inconclusive",
    )
    assert states_of(Measurement(outcome=Outcome.MEASURED))["timing_valid"] == "inconclusive"


@pytest.mark.parametrize(
    ("iteration", "reason"), [(0, "environment_unavailable"), (2, "iteration_hardware_unavailable")]
)
def test_missing_tools_end_with_3_after_three_tries(
    iteration: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    waited: list[float] = []
    with pytest.raises(Stopped) as caught:
        hardware_gate(options(tmp_path), iteration, waited.append)
    assert (caught.value.reason, caught.value.exit_code, waited) == (reason, 3, [0.0, 1.0, 2.0])
    assert "g++ is not on the PATH" in caught.value.detail
    assert len(caught.value.environment["attempts"]) == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ref": Path("none.py")}, "baseline_preflight_failed"),
        ({"ref_text": "atol = 1\n"}, "baseline_preflight_failed"),
        ({"ref_text": "def reference(x, y, n):\n    pass\n"}, "baseline_preflight_failed"),
        ({"dims": {}}, "baseline_preflight_failed"),
        ({"kernel": 'extern "C" void solve(void* x, float* y, int n) { }'}, "baseline_contract_failed"),
        ({"kernel": "int main() { }"}, "baseline_contract_failed"),
        ({"backend": "triton"}, "baseline_preflight_failed"),
    ],
)
def test_inputs_that_do_not_pass_end_with_4_and_leave_a_stop(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(Stopped) as caught:
        prepare(options(tmp_path, **changes), ENVIRONMENT, lambda _: None)
    assert (caught.value.reason, caught.value.exit_code) == (reason, 4)
    (run,) = tmp_path.glob("run_*")
    assert json.loads((run / "stop.json").read_text())["reason"] == reason
    state = json.loads((run / "state.json").read_text())
    assert (state["run_status"], state["generation_allowed"]) == ("stopped", False)
    assert reason in (run / "summary.md").read_text()


# ---------------------------------------------------------------- flags


def test_every_flag_of_the_skills_is_taken_and_dims_come_in_any_form(tmp_path: Path) -> None:
    sizes, scalars = _numbers('{"M": 4}', ["--N=8", "--K", "16", "--alpha=1.5"])
    assert (sizes, scalars) == ({"M": 4, "N": 8, "K": 16}, {"alpha": 1.5})
    with pytest.raises(UserError, match="--warmpu is 'x'"):
        _numbers("", ["--warmpu=x"])
    with pytest.raises(UserError, match="not JSON"):
        _numbers("{M: 4}", [])


def test_a_flag_that_the_judge_replaces_is_answered_in_one_line(tmp_path: Path) -> None:
    assert list(notices(options(tmp_path))) == []
    given = {"repeat": 50, "timing_batches": 1, "oom_retries": 0, "arch": "sm_90", "noise_threshold_pct": 0.1, "gpu": 1}
    said = list(notices(options(tmp_path, **given)))
    assert [line.split(":")[0] for line in said] == [
        "--repeat", "--timing-batches", "--oom-retries", "--arch", "--noise-threshold-pct", "--gpu",
    ]  # fmt: skip


def test_the_mind_gets_its_options_from_the_campaign_file(tmp_path: Path) -> None:
    law = tmp_path / "campaign.toml"
    law.write_text('[[agents]]\nrole = "explorer"\nmind = "command"\noptions = { words = ["true"] }\n')
    assert options(tmp_path, mind="command", law=law).mind_options == {"words": ["true"]}
    assert options(tmp_path, mind="catalog", law=law).mind_options == {}


def test_the_bar_is_raised_and_never_lowered(tmp_path: Path) -> None:
    assert policy_of(options(tmp_path, noise_threshold_pct=2.0)).threshold == 0.02
    assert policy_of(options(tmp_path, noise_threshold_pct=0.0)).threshold == 0.01


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "No baseline is given"),
        (["k.cu"], "No reference is given"),
        (["k.cu", "--ref", "r.py", "--branches", "9"], "--branches"),
        (["k.cu", "--ref", "r.py", "--numerics-mode", "loose"], "--numerics-mode"),
        (["k.cu", "--ref", "r.py", "--compile-jobs", "many"], "--compile-jobs"),
        (["k.cu", "--ref", "r.py"], "There is no file k.cu"),
        (["--resume", "no-such-run"], "There is no run"),
    ],
)
def test_wrong_use_is_one_sentence(words: list[str], said: str) -> None:
    found = CliRunner().invoke(app, ["optimize", *words])
    assert isinstance(found.exception, UserError)
    assert said in str(found.exception)


# ---------------------------------------------------------------- shapes


def gemm(tmp_path: Path, **dims: int) -> Any:
    (tmp_path / "g.cpp").write_text(
        'extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) { }'
    )
    (tmp_path / "r.py").write_text(
        "def reference(A, B, C, M, N, K):\n    C.view(M, N).copy_(A.view(M, K) @ B.view(K, N))\n"
    )
    return read_inputs(SkillInputs(tmp_path / "g.cpp", tmp_path / "r.py", dims))


def test_defect_3_the_large_scale_is_the_users_shape_and_the_bytes_are_those_of_the_buffers(tmp_path: Path) -> None:
    read = gemm(tmp_path, M=4096, N=4096, K=4096)
    made, notes = workloads(read, "gemm", MatrixFile(), (384.0, 512.0), adaptive=True)
    assert [(one.name, one.dims["M"], one.weight) for one in made] == [
        ("small", 2048, 0.2), ("medium", 3072, 0.3), ("large", 4096, 0.5),
    ]  # fmt: skip
    assert read.bytes_of(made[-1].dims) == 3 * 4 * 4096**2
    assert notes == ()


def test_a_smaller_scale_is_fitted_and_the_users_shape_never(tmp_path: Path) -> None:
    read = gemm(tmp_path, M=8192, N=8192, K=8192)
    made, notes = workloads(read, "gemm", MatrixFile(), (384.0, 300.0), adaptive=True)
    assert made[-1].dims == {"M": 8192, "N": 8192, "K": 8192}
    assert all((read.bytes_of(one.dims) or 0) <= 300 * 2**20 for one in made[:-1])
    assert any("it is kept" in note for note in notes)
    with pytest.raises(UserError, match="--hard-working-set-mb"):
        workloads(read, "gemm", MatrixFile(), (384.0, 300.0), adaptive=False)


def test_a_matrix_of_ones_own(tmp_path: Path) -> None:
    read = gemm(tmp_path, M=96, N=96, K=96)
    file = tmp_path / "matrix.json"
    file.write_text('{"scale_axes": ["M"], "alignment": 8, "minimum_dims": {"M": 64}, "scales": {"medium": {"K": 32}}}')
    made, _ = workloads(read, "generic", read_matrix(file), (384.0, 512.0), adaptive=True)
    assert [one.dims for one in made] == [
        {"M": 64, "N": 96, "K": 96}, {"M": 96, "N": 96, "K": 32}, {"M": 96, "N": 96, "K": 96},
    ]  # fmt: skip
    file.write_text('{"scale_axis": ["M"]}')
    with pytest.raises(UserError, match="scale_axis"):
        read_matrix(file)


# ---------------------------------------------------------------- state


def store(tmp_path: Path) -> tuple[Folder, Store]:
    return prepare(options(tmp_path), ENVIRONMENT, lambda _: None)


def test_a_second_process_is_refused_and_a_stopped_or_older_run_is_not_resumed(tmp_path: Path) -> None:
    folder, kept = store(tmp_path)
    with held(folder.path), pytest.raises(UserError, match="going on"), held(folder.path):
        pass
    at_gate(folder, kept, Stopped("baseline", "baseline_timing_invalid", "it hung"))
    found = CliRunner().invoke(app, ["optimize", "--resume", str(folder.path)])
    assert "baseline_timing_invalid" in str(found.exception)
    path = folder.path / "state.json"
    path.write_text(path.read_text().replace('"schema_version": 5', '"schema_version": 4'))
    with pytest.raises(UserError, match="schema version 4"):
        read_state(folder)


def test_an_iteration_taken_in_twice_is_taken_in_once(tmp_path: Path) -> None:
    folder, kept = store(tmp_path)
    session = Session(folder, kept, *([None] * 6), policy_of(kept.state.options), lambda _: None)  # pyright: ignore
    outcome = _outcome()
    close(session, outcome)
    once = kept.state.model_dump()
    close(session, outcome)
    assert kept.state.model_dump() == once
    assert State.model_validate_json((folder.path / "state.json").read_text()).model_dump() == once
    assert (kept.state.verified_iterations, kept.state.best_file) == (1, "iterv1/kernel.cpp")


def _outcome() -> dict[str, Any]:
    past = {
        "id": "iterv1", "agent": "optimizer", "role": "explorer", "plan": plan("t"), "parameters": {},
        "verdict": "KEEP", "reason": "", "gain": 0.5, "low": 0.4, "high": 0.6, "base": "b", "commit": "c",
    }  # fmt: skip
    row = {"iter": 1, "validation_passed": True, "speedup_vs_best_before": 1.6, "method_names": ["t"]}
    champion = {"iter": 1, "kernel": "iterv1/kernel.cpp", "average_ms": 1.0, "artifact_manifest": "", "commit": "c"}
    return {
        "row": row, "past": [past], "dollars": 0.1, "lists": {"selected_methods": ["t"]}, "kept": True, "reason": "",
        "champion": champion, "best_ns": {"large": 1e6}, "roofline": {"bound": "memory"}, "verdict": "KEEP",
    }  # fmt: skip


def test_two_runs_within_a_second_do_not_share_a_folder(tmp_path: Path) -> None:
    assert new_folder(tmp_path).path != new_folder(tmp_path).path


# ---------------------------------------------------------------- strict numerics, statistics


def test_strict_refuses_what_says_itself_that_it_reorders_and_no_plan_can_lower_the_mode(tmp_path: Path) -> None:
    strict = options(tmp_path, numerics_mode="strict")
    reordering = Plan.model_validate(plan("split_accumulator"))
    assert effect_of(reordering) == "reordered_equivalent"
    with pytest.raises(Refused, match="reordered_equivalent"):
        refuse_reordering(strict, reordering)
    refuse_reordering(options(tmp_path), reordering)
    refuse_reordering(strict, Plan.model_validate(plan("an_idea_of_a_model")))  # held to its bits by the judge instead
    with pytest.raises(ValueError, match="numerics_mode"):
        Plan.model_validate({**plan("t"), "numerics_mode": "approximate"})


def test_statistics_keep_the_raw_samples_and_say_how_steady_they_are() -> None:
    found = stats_of([1e6] * 10 + [2e6])
    assert (found["median_ms"], found["samples"], len(found["raw_ms"]), found["stability"]) == (1.0, 11, 11, "stable")
    assert stats_of([1e6, 2e6, 3e6, 4e6])["stability"] == "unstable"
    assert stats_of([]) == {}
    pair = Pair(candidate_first=True, base_ns=2e6, candidate_ns=1e6)
    seen = Measurement(outcome=Outcome.MEASURED, restarts=(Restart.of({"large": (pair,)}),))
    assert (average_ms(seen, "large", "base"), average_ms(seen, "small", "base")) == (2.0, None)


def test_importing_the_command_does_not_load_torch() -> None:
    said = "import sys, team.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"
