"""The judge end to end: a real process, real compilers, real runners."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from judge_processes import command_of, runners_of
from tasks_on_disk import ONCE, TWICE, write_task, write_tree

from protocol.messages import Noise, Outcome
from protocol.sequential import decide
from team.errors import UserError
from team.judge.client import Judge
from team.judge.failures import BaselineBroken
from team.judge.request import Calibrate, Check, Compare, Identity, Screen
from team.tasks.spec import read_spec


def test_half_the_work_is_seen_as_twice_as_fast(judge: Judge, tmp_path: Path) -> None:
    task, candidate = write_task(tmp_path / "task"), write_tree(tmp_path / "candidate", ONCE)
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(candidate)))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    policy = read_spec(task).policy
    decision = decide(seen.restarts, {"small": 1.0, "odd": 1.0}, None, policy)
    assert 1.5 < decision.overall.speedup < 3.0
    assert seen.base_build is not None
    assert seen.candidate_build is not None
    assert seen.base_build.flags == seen.candidate_build.flags
    assert seen.base_build.artifact != seen.candidate_build.artifact
    assert {check.workload for check in seen.checks} == {"small", "odd"}
    assert all(check.checks >= 2 and check.worst <= 1.0 for check in seen.checks)
    assert all(set(check.outputs) == {"y"} and check.outputs["y"] == check.worst for check in seen.checks)
    assert seen.simplicity["tokens"][1] < seen.simplicity["tokens"][0]
    assert seen.device is not None
    assert {"build", "check", "measure", "kernel"} <= set(seen.seconds)


def test_the_same_kernel_is_not_kept(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ONCE)
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(task)))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    assert decide(seen.restarts, {"small": 1.0, "odd": 1.0}, None, read_spec(task).policy).state != "keep"


def test_screen_answers_in_order(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    bodies = {"a": ONCE, "b": "    y[0] = 1.0f;\n", "c": "    undefined(x);\n"}
    trees = [write_tree(tmp_path / name, body) for name, body in bodies.items()]
    seen = judge.screen(Screen(task=str(task), base=str(task), candidates=tuple(map(str, trees))))
    assert [one.outcome for one in seen] == [Outcome.MEASURED, Outcome.INCORRECT, Outcome.BUILD_FAILED]
    assert seen[0].pairs == read_spec(task).policy.screen_pairs
    assert "error" in seen[2].detail


def test_a_race_goes_on_between_those_that_may_still_win(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    bodies = {"a": ONCE, "b": ONCE + "    // the same\n", "c": TWICE + TWICE}
    trees = [write_tree(tmp_path / name, body) for name, body in bodies.items()]
    noise = Noise(restart_sd=0.2, restart_df=20, pair_sd=0.2, floor=0.02)  # a busy machine must not part the equal ones
    request = Screen(task=str(task), base=str(task), candidates=tuple(map(str, trees)), noise=noise)
    first, second, slow = (one.pairs for one in judge.screen(request))
    assert min(first, second) > slow == read_spec(task).policy.screen_pairs


SCARCE = """\
import json, sys
from pathlib import Path
from team.devices.cpu import cpu_devices
from team.judge import pairs
from team.judge.arena import slot_size
from team.judge.judge import Judge
from team.judge.request import Calibrate
from team.tasks.task import load_task

folder, room = Path(sys.argv[1]), int(sys.argv[2])
pairs.MAX_ARENA = room * min(slot_size(load_task(folder), one) for one in load_task(folder).workloads)
judge = Judge(cpu_devices(1)[0], folder.parent / "scratch")
try:
    print(json.dumps(judge.calibrate(Calibrate(task=str(folder), base=str(folder)))[2]))
finally:
    judge.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("room", "launches"), [(10, 7), (1, 1)])
def test_where_few_launches_fit_into_memory_more_is_planted(tmp_path: Path, room: int, launches: int) -> None:
    """51 launches were laid out however large their buffers were, beyond the end of the arena."""
    task = write_task(tmp_path / "task", ONCE, looks=(8,))
    command = [sys.executable, "-c", SCARCE, str(task), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    findings = json.loads(done.stdout.splitlines()[-1])
    assert findings["planted_gain"] == pytest.approx(math.log(1 + 1 / launches))
    assert findings["planted"]["overall"]["gain"] > 0.3 * findings["planted_gain"]


def test_calibration_reports_both_halves(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ONCE, looks=(8,))
    noise, seen, findings = judge.calibrate(Calibrate(task=str(task), base=str(task)))
    assert len(seen.restarts) == 4
    assert noise.pair_sd > 0.0
    assert findings["planted_gain"] == pytest.approx(0.0198, abs=1e-4)
    assert findings["found"] == (findings["planted"]["state"] == "keep")
    assert findings["clean"] == (findings["aa"]["state"] != "keep")
    assert "seccomp" in findings["sandbox"]


def test_check_times_nothing(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    assert judge.check(Check(task=str(task), tree=str(task))).outcome is Outcome.MEASURED
    wrong = write_tree(tmp_path / "wrong", "    y[0] = 1.0f;\n")
    seen = judge.check(Check(task=str(task), tree=str(wrong)))
    assert (seen.outcome, seen.restarts) == (Outcome.INCORRECT, ())


def test_a_tree_that_was_checked_is_not_checked_again_when_it_is_a_base(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", looks=(8,))
    tree = str(write_tree(tmp_path / "tree", ONCE + "    volatile int own = 7;\n    (void)own;\n"))
    judge.check(Check(task=str(task), tree=tree))
    assert [one.name for one in judge.stages() if one.name == "case small normal"] != []
    (seen,) = judge.screen(Screen(task=str(task), base=tree, candidates=(tree,)))
    assert (seen.outcome, seen.pairs > 0) == (Outcome.MEASURED, True)
    assert [one.name for one in judge.stages() if one.name.startswith("case ")] == []


def test_a_broken_base_is_not_an_outcome(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", "    y[0] = 1.0f;\n")
    with pytest.raises(BaselineBroken, match="baseline is broken"):
        judge.compare(Compare(task=str(task), base=str(task), candidate=str(write_tree(tmp_path / "c", ONCE))))
    with pytest.raises(BaselineBroken, match="baseline is broken"):
        judge.calibrate(Calibrate(task=str(task), base=str(task)))


def test_a_faulty_task_is_a_sentence(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (task / "reference.py").write_text("def reference(x, y):\n    raise ValueError('no such luck')\n")
    with pytest.raises(UserError, match="no such luck"):
        judge.compare(Compare(task=str(task), base=str(task), candidate=str(task)))


def test_only_editable_files_may_differ(judge: Judge, tmp_path: Path) -> None:
    task, candidate = write_task(tmp_path / "task"), write_tree(tmp_path / "candidate", ONCE)
    (candidate / "notes.txt").write_text("changed\n")
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(candidate)))
    assert seen.outcome is Outcome.TAMPERED
    assert "notes.txt" in seen.detail


def test_links_and_foreign_includes_are_refused(judge: Judge, tmp_path: Path) -> None:
    task, linked = write_task(tmp_path / "task"), write_tree(tmp_path / "linked", ONCE)
    (linked / "extra.h").unlink()
    (linked / "extra.h").symlink_to(task / "notes.txt")
    foreign = write_tree(tmp_path / "foreign", ONCE)
    (tmp_path / "outside.h").write_text("\n")
    (foreign / "extra.h").write_text(f'#include "{tmp_path}/outside.h"\n')
    for tree, says in ((linked, "symbolic link"), (foreign, "outside.h")):
        seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(tree)))
        assert (seen.outcome, says in seen.detail) == (Outcome.TAMPERED, True), seen.detail


def test_a_runner_killed_from_outside_gets_a_second_chance(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ONCE, looks=(32,))
    killed: list[int] = []

    def kill_one_runner() -> None:
        while not killed:
            for process in runners_of(judge):
                if process.is_running() and "artifact" in " ".join(command_of(process)):
                    os.kill(process.pid, signal.SIGKILL)
                    killed.append(process.pid)
                    return

    assassin = threading.Thread(target=kill_one_runner)
    judge.check(Check(task=str(task), tree=str(task)))  # warm: what follows is measurement
    judge.compare(Compare(task=str(task), base=str(task), candidate=str(task)))
    assassin.start()
    seen = judge.compare(Compare(task=str(task), base=str(task), candidate=str(task)))
    assassin.join()
    assert killed
    assert seen.outcome is Outcome.MEASURED, seen.detail


def test_identity_tells_equal_bits_from_equal_enough(judge: Judge, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ONCE)
    same = write_tree(tmp_path / "same", "    for (int i = n - 1; i >= 0; i--) y[i] = std::sin(x[i]);\n")
    near = write_tree(tmp_path / "near", "    for (int i = 0; i < n; i++) y[i] = std::sin(x[i]) * 1.0000002f;\n")
    found = [judge.identical(Identity(task=str(task), base=str(task), candidate=str(tree))) for tree in (same, near)]
    assert [one.outcome for one in found] == [Outcome.MEASURED, Outcome.INCORRECT]
    assert "in bits it differs in" in found[1].detail
