"""``kernelteam ablate``: main without each of its landings: ledger, five lists, strategy memory."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from probing import HAVE_TOOLS
from test_ablation import samples
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

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.memory import place_of
from protocol.messages import Build, Decision, Estimate, Experiment, Measurement, Outcome, Plan, Role, Verdict
from protocol.methods import Status
from protocol.policy import Policy
from protocol.state import CampaignState, fold
from team import attribution
from team.attribution import ablate_run
from team.console import ablated
from team.errors import UserError
from team.judge.build import Builder
from team.judge.cuda.build import kernel_recipe
from team.judge.request import Calibrate, Check, Compare
from team.memory import StrategyMemory
from team.runs import Run
from team.workspace.hub import Hub

WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback", "cell"), "words")
GAIN = Estimate(gain=0.4, low=0.39, high=0.41, pairs=16, restarts=4)


class Ended:
    """A campaign that landed the three methods one after the other and ended."""

    toml, reference, source, language = CPU_TOML, CPU_REFERENCE, "kernel.cpp", "cpp"
    methods: tuple[str, ...] = tuple(CPU_METHODS)
    text = staticmethod(cpu_text)

    def __init__(self, folder: Path, policy: Policy) -> None:
        user = write_task(folder / "user", self.toml, self.reference, self.source, self.text(*self.methods))
        for words in (("init", "-q", "-b", "trunk"), ("add", "."), ("commit", "-q", "-m", "a task")):
            command = ["git", "-C", str(user), "-c", "user.name=Ada", "-c", "user.email=a@example.org", *words]
            subprocess.run(command, check=True)
        self.run = Run(folder / "runs" / "c")
        self.hub = Hub.create(self.run.folder, user)
        self.hub.export(self.hub.main, folder / "export").rename(self.run.trusted)
        member = ev.Member(name="explorer-1", role=Role.EXPLORER, mind="noop", device="cpu:0")
        self._ledger(
            ev.CampaignStarted(
                campaign="c", task="x", operator="three", language=self.language, numerics="reference", task_path=".",
                repository=str(user), commit=self.hub.main, workloads={"only": {"n": 60000}}, weights={"only": 1.0},
                editable=(self.source,), policy=policy, members=(member,), seed=0,
            )
        )  # fmt: skip

    def land_all(self) -> None:
        left = list(self.methods)
        for number, method in enumerate(self.methods, 1):
            left.remove(method)
            self.land(f"x{number}", method, self.text(*left))

    def land(self, ident: str, technique: str, text: str) -> None:
        before = self.hub.main
        commit = self.hub.commit(before, {self.source: text}, "faster", {"Experiment": ident}, (self.source,))
        self.hub.git.run("update-ref", "refs/heads/main", commit)
        plan = Plan.model_validate({**WORDS, "technique": technique, "category": "loops", "expected_gain": 0.1})
        said = Decision(state="keep", reason="", overall=GAIN, workloads={"only": GAIN})
        measured = Measurement(outcome=Outcome.MEASURED)
        self._ledger(
            ev.DutyGiven(ask=ident, incarnation="i", duty=Experiment(id=ident, base=before)),
            ev.PlanAdmitted(experiment=ident, plan=plan, commits=(commit,)),
            ev.ExperimentReported(experiment=ident, commit=commit, parameters={}, screened=(), measurement=measured),
            ev.ExperimentJudged(experiment=ident, verdict=Verdict.KEEP, reason="faster", decision=said),
            ev.Landed(experiment=ident, commit=commit, before=before, gain=GAIN),
        )

    def end(self) -> None:
        self._ledger(ev.Finished(why="the budget is spent"))

    def _ledger(self, *bodies: ev.AnyBody) -> None:
        with Ledger(self.run.ledger, writer=True) as ledger:
            ledger.append(1000.0, [("explorer-1", body) for body in bodies])

    def state(self) -> CampaignState:
        with Ledger(self.run.ledger) as ledger:
            return fold(ledger.events())


def build(text: str) -> Build:
    return Build(compiler="g++", flags=(), seconds=0.0, artifact=text)


class Reader:
    """A judge that knows from the text what the two first methods bring; a clock is not needed for that."""

    asked = 0
    died_at = 0

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def calibrate(self, request: Calibrate) -> tuple[None, None, None]:
        return None, None, None

    def check(self, request: Check) -> Measurement:
        text = (Path(request.tree) / "kernel.cpp").read_text()
        return Measurement(outcome=Outcome.MEASURED, candidate_build=build(text))

    def compare(self, request: Compare) -> Measurement:
        Reader.asked += 1
        if Reader.asked == Reader.died_at:
            raise KeyboardInterrupt
        champion, without = ((Path(tree) / "kernel.cpp").read_text() for tree in (request.candidate, request.base))
        assert champion == cpu_text()
        gain = 0.0 if without == cpu_text("renumbered") else 0.5
        return Measurement(
            outcome=Outcome.MEASURED, restarts=samples(gain), candidate_build=build(champion), base_build=build(without)
        )


class EndedOnGpu(Ended):
    """The same of the CUDA champion."""

    toml, reference, source, language = CUDA_TOML, CUDA_REFERENCE, "kernel.cu", "cuda"
    methods = tuple(CUDA_METHODS)
    text = staticmethod(cuda_text)


class Compiler(Reader):
    """Builds for a GPU that is not there, into the judge's own cache."""

    def __init__(self, device: Any, scratch: Path, policy: Policy) -> None:
        self._builder = Builder(scratch / "cache", scratch / "work", "nvcc")

    def _built(self, tree: str) -> Build:
        text = (Path(tree) / "kernel.cu").read_text()
        return self._builder.build(kernel_recipe({"k.cu": text}, "k.cu", "90a", "reference", None, 120.0)).build

    def check(self, request: Check) -> Measurement:
        return Measurement(outcome=Outcome.MEASURED, candidate_build=self._built(request.tree))

    def compare(self, request: Compare) -> Measurement:
        builds = {"candidate_build": self._built(request.candidate), "base_build": self._built(request.base)}
        return Measurement(outcome=Outcome.MEASURED, restarts=samples(0.5), **builds)


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_TOOLS, reason="needs nvcc and cuobjdump")
def test_the_machine_code_of_main_is_compared_with_that_of_main_without_the_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(attribution, "Judge", Compiler)
    monkeypatch.setattr(attribution, "device_of", lambda run, state: SimpleNamespace(id="GPU-0"))
    ended = EndedOnGpu(tmp_path, Policy())
    ended.land_all()
    told = ablate_run(ended.run, 4.0, lambda _: None)
    found = {one.ablation.method: one.sass for one in ended.state().ablations}
    assert (found["fma_and_fast_math"].status, found["fma_and_fast_math"].arch) == (Status.PASS, "sm_90a")
    assert found["fma_and_fast_math"].before["CALL"] > 0
    assert found["kernel_fusion"].status is Status.NOT_APPLICABLE
    assert "effective             fma_and_fast_math, kernel_fusion" in told


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ended:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Reader, "asked", 0)
    monkeypatch.setattr(Reader, "died_at", 0)
    return Ended(tmp_path, Policy())


def test_every_landing_is_taken_out_of_main_and_the_useless_one_is_named(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "Judge", Reader)
    ended.land_all()
    lines: list[str] = []
    told = ablate_run(ended.run, 1.0, lines.append)
    state = ended.state()
    assert {one.experiment: one.ablation.contribution.value for one in state.ablations} == {
        "x1": "contributed", "x2": "contributed", "x3": "not_contributed",
    }  # fmt: skip
    assert "effective             fewer_first, fewer_second" in told
    assert "ineffective           renumbered" in told
    assert any(line.startswith("fewer_first: contributed, 1.5") for line in lines)
    assert {one.ablation.how for one in state.ablations} == {"undone line by line", "the champion as it was before it"}
    for one in state.ablations:
        assert ended.hub.read(("kernel.cpp",), one.ablation.without)["kernel.cpp"] == cpu_text(one.ablation.method)
    place = place_of("three", "cpp", "", {"only": {"n": 60000}})
    known = {(one.technique, one.stage): one.positive for one in StrategyMemory().recall(place)}
    assert known["fewer_first", "ablated"] is True
    assert known["renumbered", "ablated"] is False


def test_an_ablation_that_was_broken_off_goes_on_where_it_stopped(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "Judge", Reader)
    ended.land_all()
    monkeypatch.setattr(Reader, "died_at", 2)
    with pytest.raises(KeyboardInterrupt):
        ablate_run(ended.run, 1.0, lambda _: None)
    assert len(ended.state().ablations) == 1
    ablate_run(ended.run, 1.0, lambda _: None)
    assert len(ended.state().ablations) == 3
    asked = Reader.asked
    assert "renumbered" in ablate_run(ended.run, 1.0, lambda _: None)
    assert Reader.asked == asked


def test_when_the_time_is_up_the_rest_stays_unverified_and_is_not_on_record(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "Judge", Reader)
    ended.land_all()
    told = ablate_run(ended.run, 0.0, lambda _: None)
    assert ended.state().ablations == []
    assert "unverified            fewer_first, fewer_second, renumbered" in told


def test_a_run_ends_with_it_when_the_law_gives_time_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELTEAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(attribution, "Judge", Reader)
    for name, policy, count in (("none", Policy(), 0), ("five", Policy(ablation_minutes=5.0), 3)):
        made = Ended(tmp_path / name, policy)
        assert ablated(made.run, made.state()).ablations == []
        made.land_all()
        assert ablated(made.run, made.state()).ablations == [], "it has not ended yet"
        made.end()
        assert len(ablated(made.run, made.state()).ablations) == count


def test_nothing_landed_is_one_sentence(ended: Ended) -> None:
    with pytest.raises(UserError, match="Nothing landed on main"):
        ablate_run(ended.run, 1.0)


@pytest.mark.slow
def test_a_campaign_of_three_methods_end_to_end_with_the_real_judge(ended: Ended) -> None:
    ended.land_all()
    told = ablate_run(ended.run, 4.0)
    assert "effective             fewer_first, fewer_second" in told
    assert "ineffective           renumbered" in told
    assert "the same of the kernel" in ended.state().ablations[-1].ablation.why
