"""The landing desk with real git: what reaches main, how, and that every step may be repeated after a crash."""

import subprocess
from pathlib import Path

import pytest

from protocol import events as ev
from protocol.messages import Decision, Estimate, Measurement, Outcome, Plan, Verdict
from protocol.state import ExperimentState, LandingState
from team.landing import LandingDesk, Prepare, Settle
from team.workspace.hub import Hub, NotForward

TEXT = "".join(f"// line {number}\n" for number in range(12))
EDITABLE = ("kernel.cpp",)


def estimate(gain: float) -> Estimate:
    return Estimate(gain=gain, low=gain - 0.01, high=gain + 0.01, pairs=16, restarts=4)


DECISION = Decision(state="keep", reason="faster", overall=estimate(0.1))


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    task = tmp_path / "user"
    task.mkdir()
    for name, text in (("task.toml", "name = 'x'\n"), ("kernel.cpp", TEXT), ("reference.py", "#\n")):
        (task / name).write_text(text)
    for words in (("init", "-q", "-b", "trunk"), ("add", "."), ("commit", "-q", "-m", "first")):
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", "-C", str(task), *identity, *words], check=True)
    return Hub.create(tmp_path / "run", task)


@pytest.fixture
def desk(hub: Hub) -> LandingDesk:
    return LandingDesk(hub, EDITABLE)


def experiment(hub: Hub, ident: str, text: str, parent: str = "") -> ExperimentState:
    words = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback", "category", "cell"), "words")
    plan = Plan(technique="unroll", change=f"change {ident}", expected_gain=0.1, **words)
    base = parent or hub.main
    commit = hub.commit(base, {"kernel.cpp": text}, f"change {ident}", {}, EDITABLE)
    hub.anchor(f"experiments/{ident}", commit)
    return ExperimentState(ident, "explorer-1", base, plan=plan, commit=commit, overall=estimate(0.1))


def edited(line: int, text: str = TEXT) -> str:
    return text.replace(f"// line {line}\n", f"// line {line}, faster\n")


def prepare(desk: LandingDesk, hub: Hub, one: ExperimentState) -> ev.LandingPrepared:
    body = desk.carry_out(Prepare(one, hub.main))
    assert isinstance(body, ev.LandingPrepared)
    return body


def settle(one: ExperimentState, prepared: ev.LandingPrepared, verdict: Verdict = Verdict.KEEP) -> Settle:
    measured = ev.LandingMeasured(
        duty="v1", experiment=one.id, device="d", measurement=Measurement(outcome=Outcome.MEASURED), decision=DECISION
    )
    landing = LandingState(one.id, one.agent, prepared.candidate, prepared.main, prepared.how, measured)
    return Settle(one, landing, verdict, "because", prepared.main)


def text_of(hub: Hub, commit: str) -> str:
    return hub.read(EDITABLE, commit)["kernel.cpp"]


def test_two_changes_that_compose_land_one_after_the_other(desk: LandingDesk, hub: Hub) -> None:
    first, second = experiment(hub, "x1", edited(1)), experiment(hub, "x2", edited(10))
    for one in (first, second):
        prepared = prepare(desk, hub, one)
        assert (prepared.how, prepared.main) == ("cherry-pick", hub.main)
        landed = desk.carry_out(settle(one, prepared))
        assert isinstance(landed, ev.Landed)
        assert (landed.commit, landed.before) == (hub.main, prepared.main)
    assert text_of(hub, hub.main) == edited(10, edited(1))
    assert [entry.subject for entry in hub.log(hub.main)][:2] == ["change x2", "change x1"]


def test_a_commit_on_main_says_which_experiment_it_was_and_what_it_gave(desk: LandingDesk, hub: Hub) -> None:
    prepared = prepare(desk, hub, experiment(hub, "x1", edited(1)))
    message = hub.git.text("log", "-1", "--format=%B", prepared.candidate)
    for trailer in (
        "Experiment: x1",
        "Technique: unroll",
        "Agent: explorer-1",
        "Speedup: 1.1052",
        "Interval: [1.0942, 1.1163]",
    ):
        assert trailer in message.splitlines()


def test_a_change_that_conflicts_is_compared_as_a_whole_tree(desk: LandingDesk, hub: Hub) -> None:
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", TEXT.replace("// line 1\n", "// other\n"))
    desk.carry_out(settle(first, prepare(desk, hub, first)))
    prepared = prepare(desk, hub, second)
    assert prepared.how == "whole tree"
    assert text_of(hub, prepared.candidate) == text_of(hub, second.commit)
    assert hub.is_ancestor(hub.main, prepared.candidate)


def test_a_chain_of_kept_commits_lands_link_by_link(desk: LandingDesk, hub: Hub) -> None:
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", edited(10, edited(1)), parent=first.commit)
    for one in (first, second):
        prepared = prepare(desk, hub, one)
        assert prepared.how == "cherry-pick"
        desk.carry_out(settle(one, prepared))
    assert text_of(hub, hub.main) == edited(10, edited(1))


def test_a_link_lands_without_one_that_was_refused(desk: LandingDesk, hub: Hub) -> None:
    first = experiment(hub, "x1", edited(1))
    second = experiment(hub, "x2", edited(10, edited(1)), parent=first.commit)
    prepare(desk, hub, first)
    prepared = prepare(desk, hub, second)
    assert text_of(hub, prepared.candidate) == edited(10)


@pytest.mark.parametrize("text", [TEXT, edited(1)], ids=["nothing changes", "the same change again"])
def test_what_main_holds_already_is_refused(desk: LandingDesk, hub: Hub, text: str) -> None:
    first, again = experiment(hub, "x1", edited(1)), experiment(hub, "x2", text)
    desk.carry_out(settle(first, prepare(desk, hub, first)))
    refused = desk.carry_out(Prepare(again, hub.main))
    assert isinstance(refused, ev.LandingRefused)
    assert "already" in refused.why


@pytest.mark.parametrize("verdict", [v for v in Verdict if not v.kept])
def test_main_stands_still_when_the_verification_does_not_confirm(
    desk: LandingDesk, hub: Hub, verdict: Verdict
) -> None:
    one, before = experiment(hub, "x1", edited(1)), hub.main
    refused = desk.carry_out(settle(one, prepare(desk, hub, one), verdict))
    assert isinstance(refused, ev.LandingRefused)
    assert verdict.value in refused.why
    assert hub.main == before


def test_each_step_may_be_repeated_after_a_crash(desk: LandingDesk, hub: Hub) -> None:
    one = experiment(hub, "x1", edited(1))
    first, again = prepare(desk, hub, one), prepare(desk, hub, one)
    assert text_of(hub, first.candidate) == text_of(hub, again.candidate)
    step = settle(one, again)
    assert desk.carry_out(step) == LandingDesk(Hub.open(hub.run_dir), EDITABLE).carry_out(step)
    assert hub.main == again.candidate


def test_main_never_moves_sideways(desk: LandingDesk, hub: Hub) -> None:
    first, second = experiment(hub, "x1", edited(1)), experiment(hub, "x2", edited(10))
    one, two = prepare(desk, hub, first), prepare(desk, hub, second)
    desk.carry_out(settle(first, one))
    with pytest.raises(NotForward):
        desk.carry_out(settle(second, two))
    assert hub.main == one.candidate


def test_a_landing_worktree_that_somebody_deleted_is_made_again(desk: LandingDesk, hub: Hub) -> None:
    prepare(desk, hub, experiment(hub, "x1", edited(1)))
    subprocess.run(["rm", "-rf", str(hub.landing().folder)], check=True)
    assert prepare(desk, hub, experiment(hub, "x2", edited(2))).how == "cherry-pick"
