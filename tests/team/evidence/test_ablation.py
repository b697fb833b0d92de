"""Ablation by the judge: what a champion owes to its methods; what could not be measured proves nothing."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from three_methods import (
    CPU_METHODS,
    CPU_REFERENCE,
    CPU_TOML,
    CUDA_METHODS,
    CUDA_REFERENCE,
    CUDA_TOML,
    cpu_text,
    cuda_text,
    write_task,
)

from protocol.messages import Decision, Measurement, Outcome, Restart
from protocol.methods import Contribution, Status, sorted_methods
from protocol.pairs import Pair
from protocol.policy import Policy
from team.devices import discover
from team.evidence.ablation import Ablated, Trial, Without, ablate
from team.evidence.artifacts import artifact_of
from team.evidence.sass import verify
from team.judge.client import Judge
from team.judge.failures import BaselineBroken, JudgeDied
from team.judge.request import Calibrate, Check, Compare

log = logging.getLogger(__name__)
WEIGHTS = {"only": 1.0}


def samples(gain: float) -> tuple[Restart, ...]:
    """Restarts in which the candidate is ahead by this fraction, a little more or less."""
    pairs = [
        tuple(Pair(candidate_first=bool(k % 2), base_ns=1000.0 * (1 + gain + 0.001 * k), candidate_ns=1000.0)
              for k in range(4))
        for _ in range(32)
    ]  # fmt: skip
    return tuple(Restart.of({"only": each}) for each in pairs)


class Scripted:
    """A judge that answers by the name of the tree on the base's side, and counts what it was asked."""

    def __init__(self, **answers: Measurement | BaseException) -> None:
        self.answers = answers
        self.started = 0
        self.compared: list[Compare] = []

    def start(self) -> None:
        self.started += 1

    def check(self, request: Check) -> Measurement:
        if request.tree == "/champion":
            return Measurement(outcome=Outcome.MEASURED)
        answer = self.answers[Path(request.tree).name]
        if isinstance(answer, BaseException):
            raise answer
        return Measurement(outcome=answer.outcome, detail=answer.detail)

    def compare(self, request: Compare) -> Measurement:
        self.compared.append(request)
        answer = self.answers[Path(request.base).name]
        assert isinstance(answer, Measurement)
        return answer


def tried(judge: Scripted, *methods: Without, seconds: float | None = None) -> list[Ablated]:
    trial = Trial(cast(Judge, judge), Path("/task"), Path("/champion"), WEIGHTS, None, Policy())
    return list(ablate(trial, methods, seconds))


def without(method: str) -> Without:
    return Without(method, Path(f"/trees/{method}"), "undone", f"commit-{method}")


def test_the_champion_is_measured_against_the_tree_without_the_method_and_the_interval_decides() -> None:
    judge = Scripted(
        good=Measurement(outcome=Outcome.MEASURED, restarts=samples(0.2)),
        useless=Measurement(outcome=Outcome.MEASURED, restarts=samples(0.0)),
    )
    good, useless = tried(judge, without("good"), without("useless"))
    assert good.ablation.contribution is Contribution.CONTRIBUTED
    assert useless.ablation.contribution is Contribution.NOT_CONTRIBUTED
    assert good.ablation.gain is not None
    assert good.ablation.gain.low > 0.1
    assert (good.ablation.without, good.ablation.how) == ("commit-good", "undone")
    assert {(one.candidate, one.task) for one in judge.compared} == {("/champion", "/task")}


@pytest.mark.parametrize(
    "answer",
    [
        *(Measurement(outcome=outcome, detail="so it is") for outcome in Outcome if outcome is not Outcome.MEASURED),
        BaselineBroken("it does not run", "mend it"),
        JudgeDied("the judge died"),
    ],
)
def test_whatever_fails_without_the_method_proves_nothing_for_it(answer: Measurement | BaseException) -> None:
    judge = Scripted(essential=answer)
    (found,) = tried(judge, without("essential"))
    assert found.ablation.contribution is Contribution.INCONCLUSIVE
    assert judge.compared == []
    assert judge.started == isinstance(answer, JudgeDied)


def test_a_tree_that_nobody_wrote_and_one_whose_turn_never_came_are_inconclusive() -> None:
    absent, late = tried(Scripted(), Without("absent", None, "no mind was asked"), without("late"), seconds=0.0)
    assert (absent.ablation.contribution, absent.ablation.why) == (Contribution.INCONCLUSIVE, "no mind was asked")
    assert late.ablation.contribution is Contribution.INCONCLUSIVE
    assert (absent.begun, late.begun) == (True, False)


def on_disk(folder: Path, toml: str, reference: str, source: str, text: Any, methods: Any) -> dict[str, Path]:
    """The champion as the task, and a tree without each method."""
    trees = {"": write_task(folder / "champion", toml, reference, source, text())}
    return trees | {
        name: write_task(folder / name, toml, reference, source, text(name)) for name in methods
    }  # fmt: skip


@pytest.mark.slow
def test_a_cpp_champion_of_three_methods_is_ablated_correctly(tmp_path: Path) -> None:
    trees = on_disk(tmp_path, CPU_TOML, CPU_REFERENCE, "kernel.cpp", cpu_text, CPU_METHODS)
    champion = trees.pop("")
    with Judge(discover("cpu", 1)[0], tmp_path / "judge") as judge:
        noise = judge.calibrate(Calibrate(task=str(champion), base=str(champion)))[0]
        trial = Trial(judge, champion, champion, WEIGHTS, noise, Policy())
        found = {
            one.ablation.method: one.ablation for one in ablate(trial, [Without(n, t, "") for n, t in trees.items()])
        }
    for name, one in found.items():
        log.info("%s: %s, %s", name, one.contribution, one.why)
    assert found["fewer_first"].contribution is Contribution.CONTRIBUTED
    assert found["fewer_second"].contribution is Contribution.CONTRIBUTED
    assert found["renumbered"].contribution is Contribution.NOT_CONTRIBUTED
    assert "the same of the kernel" in found["renumbered"].why


@pytest.mark.gpu
def test_a_cuda_champion_of_three_methods_is_ablated_correctly(tmp_path: Path) -> None:
    """Fast division and one kernel for two pay, and machine code shows the first; bounds that bind nothing do not."""
    trees = on_disk(tmp_path, CUDA_TOML, CUDA_REFERENCE, "kernel.cu", cuda_text, CUDA_METHODS)
    champion, ablations, checks = trees.pop(""), {}, {}
    with Judge(discover("cuda", 1)[0], tmp_path / "judge") as judge:
        noise = judge.calibrate(Calibrate(task=str(champion), base=str(champion)))[0]
        trial = Trial(judge, champion, champion, WEIGHTS, noise, Policy())
        for one in ablate(trial, [Without(name, tree, "written by the test") for name, tree in trees.items()]):
            name = one.ablation.method
            ablations[name] = one.ablation
            assert one.builds is not None, one.ablation.why
            paths = [artifact_of(tmp_path / "judge" / "cache", each.artifact) for each in one.builds]
            assert paths[0] is not None
            (checks[name],) = verify([name], paths[0], paths[1])
            log.info("%s: %s, %s; %s, %s", name, one.ablation.contribution, one.ablation.why, checks[name].status,
                     checks[name].why)  # fmt: skip
    lists = sorted_methods(trees, ablations, checks)
    log.info("%s", lists)
    assert checks["fma_and_fast_math"].status is Status.PASS
    assert checks["kernel_fusion"].status is Status.NOT_APPLICABLE
    assert set(lists.effective) == {"fma_and_fast_math", "kernel_fusion"}
    assert "launch_bounds" not in lists.effective
    assert ablations["launch_bounds"].contribution is Contribution.NOT_CONTRIBUTED


def test_the_word_is_the_decision_of_the_law() -> None:
    found = tried(Scripted(good=Measurement(outcome=Outcome.MEASURED, restarts=samples(0.2))), without("good"))[0]
    assert found.measurement is not None
    from protocol.sequential import decide

    said: Decision = decide(found.measurement.restarts, WEIGHTS, None, Policy())
    assert found.ablation.gain == said.overall
    assert found.ablation.why == said.reason
