"""Section 10 of the reference: twenty things that the optimizer skill does wrong, and a test that each is not so here.

``HELD`` says which tests those are, and one test here fails when a number has none or names one that is not there. A
cheat or fault is put before ``kernelteam optimize`` itself, as a branch of a run; what shows on a GPU alone is marked.
"""

import ast
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cheating import HONEST, REF, SLOW, kernel, loop
from optimizing import FAST, Ended, proposal, read, write_inputs
from stand_in import StandIn, stood_in, text_in

from protocol.messages import Briefing, Measurement, Outcome, Proposal, Role
from roles.minds.scripted import ScriptedMind
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.judge.client import Judge
from team.judge.request import Check
from team.optimize.baseline import prepare
from team.optimize.gates import Stopped
from team.optimize.hardware import use_chosen_tools
from team.optimize.iteration import iterate
from team.optimize.options import Options
from team.optimize.summary import write_summary

ROOT = Path(__file__).parents[3]
OURS, GATES, COMMAND = (
    f"tests/team/optimize/test_{name}.py" for name in ("skill_defects", "optimize_gates", "optimize_command")
)
ON_GPU, NCU, INPUTS = (
    "tests/team/optimize/test_gpu_optimize.py",
    "tests/team/evidence/test_ncu",
    "tests/team/tasks/test_skill_inputs.py",
)
HELD: dict[int, tuple[str, ...]] = {
    1: (f"{NCU}_degraded.py::test_profiling_under_the_holder_of_the_device_does_not_wait_for_it",),
    2: (f"{NCU}_degraded.py::test_only_the_launches_of_one_call_are_profiled_and_clocks_are_left_alone",),
    3: (
        f"{GATES}::test_defect_3_the_large_scale_is_the_users_shape_and_the_bytes_are_those_of_the_buffers",
        f"{COMMAND}::test_a_run_is_judged_and_leaves_every_artifact",
    ),
    4: (f"{ON_GPU}::test_defect_4_a_triton_kernel_goes_through_three_iterations",),
    5: (
        f"{INPUTS}::test_defect_5_an_attention_gets_all_of_its_elements",
        f"{INPUTS}::test_defect_11_a_table_that_is_looked_up_is_as_long_as_the_kernel_says_and_not_as_the_indices_reach",
    ),
    6: (
        f"{OURS}::test_defect_6_the_chosen_gpu_is_the_only_one_that_anything_sees",
        f"{OURS}::test_defect_6_the_baseline_is_checked_on_many_draws_and_every_one_must_pass",
    ),
    7: (f"{OURS}::test_defect_7_a_branch_that_does_no_work_when_nobody_looks_fails",),
    8: (
        f"{OURS}::test_defect_8_work_that_goes_on_after_the_call_is_not_there_when_outputs_are_read",
        f"{ON_GPU}::test_defects_8_and_19_work_beside_the_clock_and_a_launch_that_fails",
    ),
    9: (f"{INPUTS}::test_defect_9_a_reference_that_writes_nothing_is_refused",),
    10: (f"{OURS}::test_defect_10_every_dtype_is_compared_as_what_it_is",),
    11: (
        f"{OURS}::test_defect_11_shapes_and_values_that_nobody_listed_and_inputs_that_must_stay",
        f"{INPUTS}::test_defect_11_integers_are_in_range_on_every_shape_that_is_checked",
    ),
    12: (
        f"{OURS}::test_defects_12_and_17_a_kernel_shares_no_process_with_its_checker_and_reaches_no_file",
        "tests/team/judge/test_build.py::test_a_damaged_artifact_is_built_again",
    ),
    13: (
        "tests/team/evidence/test_sass.py::test_only_the_opcode_column_counts",
        "tests/team/evidence/test_sass_probes.py::test_a_name_full_of_mnemonics_is_no_instruction",
        "tests/team/evidence/test_sass_probes.py::test_every_signature_passes_its_probe_and_fails_the_near_miss",
    ),
    14: (f"{OURS}::test_defect_14_a_lucky_branch_is_measured_afresh_against_the_best_and_not_kept",),
    15: (
        f"{OURS}::test_defect_15_a_kernel_that_never_ends_fails_alone_and_soon",
        f"{OURS}::test_defect_15_a_compiler_that_never_ends_is_killed",
    ),
    16: (
        f"{NCU}_degraded.py::test_without_counters_times_remain_and_nothing_is_invented",
        f"{NCU}_degraded.py::test_a_denial_is_not_tried_again",
    ),
    17: (
        f"{OURS}::test_defects_12_and_17_a_kernel_shares_no_process_with_its_checker_and_reaches_no_file",
        f"{OURS}::test_defect_17_the_screen_stops_what_looks_around",
        f"{OURS}::test_defect_17_a_reference_that_ends_its_process_does_not_end_the_run",
        "tests/team/judge/test_sandbox.py::test_the_kernel_cannot",
    ),
    18: (
        f"{NCU}_metrics.py::test_values_have_units_and_percentages_become_shares",
        f"{NCU}_metrics.py::test_a_report_in_scaled_units_means_the_same",
    ),
    19: (f"{ON_GPU}::test_defects_8_and_19_work_beside_the_clock_and_a_launch_that_fails",),
    20: (
        f"{OURS}::test_defect_20_an_iteration_without_a_valid_branch_is_set_aside_and_the_next_one_wins",
        f"{OURS}::test_defect_20_the_frontier_is_kept_and_started_from",
        f"{OURS}::test_defect_20_branches_are_b1_to_bk_wherever_they_are_named",
        "tests/team/optimize/test_composed.py::test_branches_hold_different_sets_of_methods_and_the_champion_says_which",
    ),
}  # fmt: skip


def test_every_defect_has_a_test() -> None:
    assert sorted(HELD) == list(range(1, 21))
    for number, names in HELD.items():
        assert names, number
        for name in names:
            file, _, function = name.partition("::")
            tree = ast.parse((ROOT / file).read_text())
            assert function in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, name


def options(folder: Path, *proposals: dict[str, Any], **more: Any) -> Options:
    texts = {name: more.pop(name) for name in ("kernel", "ref") if name in more}
    write_inputs(folder, *proposals, **texts)
    given = {"baseline": folder / "scale.cpp", "ref": folder / "ref.py", "dims": {"n": 4096}}
    return Options.model_validate({**given, "mind": f"scripted:{folder / 'play.json'}", **more})


# ---------------------------------------------------------------- 6: one seed, GPU 0


def test_defect_6_the_chosen_gpu_is_the_only_one_that_anything_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("team.devices.nvml.visible_uuids", lambda: ["GPU-a", "GPU-b"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    (tmp_path / "k.cu").touch()
    asked = Options(baseline=tmp_path / "k.cu", ref=tmp_path / "ref.py", gpu=1)
    use_chosen_tools(asked)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    with pytest.raises(UserError, match="no GPU 2: 2 are visible"):
        use_chosen_tools(asked.model_copy(update={"gpu": 2}))


def test_defect_6_the_baseline_is_checked_on_many_draws_and_every_one_must_pass(cheated: Ended) -> None:
    seen = read(cheated.path / "baseline" / "bench.json")["correctness"]
    assert seen["passed"]
    assert sum(seen["outputs_compared"].values()) > len(read(cheated.path / "state.json")["validation_seeds"])


# ---------------------------------------------------------------- 7, 8, 10, 11: cheats that pass there


@pytest.mark.parametrize("text", ["skips", "remembers", "if_still_empty"])
def test_defect_7_a_branch_that_does_no_work_when_nobody_looks_fails(text: str, cheated: Ended) -> None:
    row = cheated.branch(text)
    assert (row["passed"], row["states"]["correctness_pass"]) == (False, "fail"), row
    assert re.search(r"output 'y' is nan|elements of 'm' differ", row["error"])


def test_defect_8_work_that_goes_on_after_the_call_is_not_there_when_outputs_are_read(cheated: Ended) -> None:
    row = cheated.branch("later")
    assert not row["passed"]
    assert "fail" in (row["states"]["correctness_pass"], row["states"]["contract_pass"]), row


@pytest.mark.parametrize(
    ("text", "said"), [("off_by_one", "elements of 'm' differ"), ("through_float", "output 'e' is")]
)
def test_defect_10_every_dtype_is_compared_as_what_it_is(text: str, said: str, cheated: Ended) -> None:
    """An int64 that is wrong by one in 2^40, and a float64 with the digits of a float32: equal as float32."""
    row = cheated.branch(text)
    assert (row["passed"], row["states"]["correctness_pass"]) == (False, "fail"), row
    assert said in row["error"]


def test_defect_11_shapes_and_values_that_nobody_listed_and_inputs_that_must_stay(cheated: Ended) -> None:
    tail = cheated.branch("whole_eights")
    assert tail["weighted_geomean_speedup"] > 1.0  # it is right on every shape of the matrix, and was raced
    assert (tail["passed"], tail["measured_afresh"], tail["states"]["correctness_pass"]) == (False, True, "fail")
    assert "unlisted" in tail["error"]
    assert "input 'x' was changed" in cheated.branch("changes_input")["error"]
    checks = read(cheated.path / "iterv2" / "bench.json")["correctness"]["outputs_compared"]
    assert checks["small"] > checks["large"] > 2  # bent value profiles on all, and unlisted shapes beside the smallest


# ---------------------------------------------------------------- 14: the winner's curse


def test_defect_14_a_lucky_branch_is_measured_afresh_against_the_best_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{FAST}// {number}\n" for number in range(4)]
    luck = dict(zip(texts, (0.02, 0.30, 0.05, 0.0), strict=True))
    judge = StandIn(fresh=lambda _: 0.0, race=lambda text: luck.get(text, 0.0))
    asked = options(tmp_path, proposal("noise", *texts), proposal("more_noise", *texts))
    with stood_in(asked, judge, monkeypatch) as session:
        assert iterate(session, 1)
        best = text_in(str(session.snapshot(session.best)))
    compared = [(base, candidate) for kind, base, candidate in judge.asked if kind == "compare"]
    assert compared == [(best, texts[1])]  # the luckiest of the race, once more, against what stands now
    row = read(session.folder.iteration(1) / "branch_results.json")["champion"]
    assert row["weighted_geomean_speedup"] > 1.3
    assert session.state.history[0]["status"] == "regressed"
    assert session.state.global_champion is not None
    assert session.state.global_champion.iter == 0


# ---------------------------------------------------------------- 15: timeouts


def test_defect_15_a_kernel_that_never_ends_fails_alone_and_soon(cheated: Ended) -> None:
    row = cheated.branch("never_ends")
    assert (row["passed"], row["states"]["timing_valid"]) == (False, "fail"), row
    assert "no answer within" in row["error"]
    assert "SIGSEGV" in cheated.branch("crashes")["error"]


class Loose:
    """A judge on the very task that a run made, with the screen off and a second for the compiler."""

    def __init__(self, task: Path, judge: Judge) -> None:
        self._task, self._judge = task, judge

    def check(self, tree: Path, text: str) -> Measurement:
        shutil.copytree(self._task, tree)
        (tree / "scale.cpp").write_text(text)
        return self._judge.check(Check(task=str(self._task), tree=str(tree)))


@pytest.fixture(scope="module")
def loose(cheated: Ended, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loose]:
    folder = tmp_path_factory.mktemp("loose")
    task = folder / "task"
    shutil.copytree(cheated.path / "task", task, ignore=shutil.ignore_patterns(".git"))
    with (task / "task.toml").open("a") as file:
        file.write("[build]\ntimeout_s = 4.0\n[screen]\nactive = false\n")
    with Judge(cpu_devices(1)[0], folder / "scratch") as judge:
        yield Loose(task, judge)


@pytest.mark.slow
def test_defect_15_a_compiler_that_never_ends_is_killed(loose: Loose, tmp_path: Path) -> None:
    tower = "template <int A, int B> struct T { static const long v = T<A - 1, B>::v + T<A - 1, B + (1 << A)>::v; };\n"
    tower += "template <int B> struct T<0, B> { static const long v = B; };\nconst long top = T<28, 0>::v;\n"
    began = time.monotonic()
    seen = loose.check(tmp_path / "tree", tower + HONEST)
    assert (seen.outcome, "more than 4 s and was killed" in seen.detail) == (Outcome.BUILD_FAILED, True), seen.detail
    assert time.monotonic() - began < 60.0


# ---------------------------------------------------------------- 12, 17: whose process, and what it reaches


@pytest.mark.slow
def test_defects_12_and_17_a_kernel_shares_no_process_with_its_checker_and_reaches_no_file(
    loose: Loose, cheated: Ended, tmp_path: Path
) -> None:
    """With the screen off. Were any act to succeed, the kernel would end its process."""
    state = cheated.path / "state.json"
    before = state.read_bytes()
    acts = f"""
    if (Py_IsInitialized != nullptr) std::abort();
    if (open("{cheated.path}/task/ref.py", O_RDONLY) >= 0 || open("{state}", O_RDWR) >= 0) std::abort();
    if (open("{state}", O_WRONLY | O_TRUNC) >= 0 || open("{tmp_path}/new", O_CREAT | O_WRONLY, 0600) >= 0) std::abort();
    if (unlink("{state}") == 0 || rename("{state}", "{state}.old") == 0) std::abort();
    if (fork() >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 || kill(getppid(), SIGTERM) == 0) std::abort();
"""
    includes = "".join(
        f"#include <{name}>\n" for name in ("csignal", "cstdio", "cstdlib", "fcntl.h", "sys/socket.h", "unistd.h")
    )
    known = 'extern "C" int Py_IsInitialized() __attribute__((weak));\n'
    seen = loose.check(tmp_path / "tree", includes + known + kernel(acts + loop(2)))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert state.read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_defect_17_the_screen_stops_what_looks_around(cheated: Ended) -> None:
    row = cheated.branch("reads_reference")
    assert (row["passed"], row["states"]["contract_pass"]) == (False, "fail")
    assert "names ifstream" in row["error"]


@pytest.mark.slow
def test_defect_17_a_reference_that_ends_its_process_does_not_end_the_run(tmp_path: Path) -> None:
    ends = options(tmp_path, kernel=SLOW, ref="import os\nos._exit(3)\n" + REF)
    with pytest.raises(Stopped) as caught:
        prepare(ends, {"hardware_attempts": 1, "gpus": []}, lambda _: None)
    assert (caught.value.reason, caught.value.exit_code) == ("baseline_preflight_failed", 4)
    assert "ended the process that ran it" in caught.value.detail


# ---------------------------------------------------------------- 20: failed iterations, and branches that lost


def test_defect_20_an_iteration_without_a_valid_branch_is_set_aside_and_the_next_one_wins(cheated: Ended) -> None:
    history = read(cheated.path / "state.json")["history"]
    assert [row["status"] for row in history] == ["failed_validation", "improved"]
    assert not (cheated.path / "iterv1").exists()
    assert (cheated.path / "failed" / "iterv1" / "branch_results.json").is_file()
    assert (cheated.path / "iterv2" / "kernel.cpp").read_text() == HONEST


def test_defect_20_branches_are_b1_to_bk_wherever_they_are_named(cheated: Ended) -> None:
    for found in (cheated.path / "failed" / "iterv1", cheated.path / "iterv2"):
        rows = read(found / "branch_results.json")["branches"]
        assert [row["branch_index"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["kernel"] for row in rows] == [f"branches/b{row['branch_index']}/kernel.cpp" for row in rows]
        assert sorted(path.name for path in (found / "branches").iterdir()) == [f"b{n + 1}" for n in range(len(rows))]
    champion = read(cheated.path / "iterv2" / "branch_results.json")["champion"]
    named = cheated.path / "iterv2" / champion["kernel"]
    assert named.read_text() == (cheated.path / "iterv2" / "kernel.cpp").read_text()


def test_defect_20_the_frontier_is_kept_and_started_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that beat the base and lost its race is offered, with its text, to whoever has the next idea."""
    texts = {f"{FAST}// {number}\n": gain for number, gain in enumerate((0.3, 0.25, -0.1))}
    seen: list[Briefing] = []

    def start_from_it(briefing: Briefing) -> Proposal:
        seen.append(briefing)
        (start,) = briefing.frontier
        more = f"{start.files['scale.cpp']}// and more\n"
        texts[more] = 0.6
        return Proposal.model_validate(proposal("on_the_runner_up", more))

    judge = StandIn(fresh=lambda text: texts.get(text, 0.0), race=lambda text: texts.get(text, 0.0))
    with stood_in(options(tmp_path, proposal("first", *texts)), judge, monkeypatch) as session:
        iterate(session, 1)
        offered = session.state.frontier
        assert [(one["experiment"], one["parameters"]) for one in offered] == [("iterv1", {"v": 1})]
        session.mind = ScriptedMind(start_from_it)
        iterate(session, 2)
    assert seen[0].role is Role.EXPLOITER
    assert seen[0].frontier[0].files == {"scale.cpp": f"{FAST}// 1\n"}
    assert (session.folder.iteration(2) / "kernel.cpp").read_text() == f"{FAST}// 1\n// and more\n"
    write_summary(session.folder.path, session.state)
    assert "## Frontier" in (session.folder.path / "summary.md").read_text()
