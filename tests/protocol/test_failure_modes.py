"""The ways in which a campaign fools itself: each is seen, named, and acted upon."""

import pytest
from story import A, B, Story, estimate, measured, plan, started

from protocol import events as ev
from protocol.admission import refusal
from protocol.failure_modes import failure_modes
from protocol.messages import Baseline, Experiment, Measurement, Profile, Verdict, VerifyLanding
from protocol.policy import Policy
from protocol.rounds import recap


def modes(story: Story) -> set[str]:
    return {finding.mode for finding in failure_modes(story.state)}


def keep(story: Story, agent: str, gain: float, lines: int = 10, worst: float = 0.1, rewrite: str = "", **more: float):
    """One KEEP with what the detectors look at."""
    duty = Experiment(id=f"x{story.state.duties + 1}", base=story.state.head_of(agent))
    story.give(agent, duty)
    story.say(agent, ev.PlanAdmitted(experiment=duty.id, plan=plan(rewrite=rewrite), commits=("c",)))
    checks = [{"workload": "small", "checks": 3, "worst": worst}]
    seen = Measurement.model_validate({**measured(gain).model_dump(), "checks": checks})
    report = ev.ExperimentReported(
        experiment=duty.id, commit=f"c-{duty.id}", parameters={}, screened=(), measurement=seen, lines=(lines, 0)
    )
    workloads = {name: estimate(value) for name, value in more.items()} or {"small": estimate(gain)}
    word = {"state": "keep", "reason": "r", "overall": estimate(gain), "workloads": workloads}
    judged = {"experiment": duty.id, "verdict": Verdict.KEEP, "reason": "r", "decision": word}
    story.say(agent, report, ev.ExperimentJudged.model_validate(judged))
    return duty.id


def test_a_healthy_campaign_has_none() -> None:
    story = started()
    keep(story, A, 0.03)
    assert failure_modes(story.state) == ()


def test_profile_blindness_refuses_plans_until_a_profile_is_reported() -> None:
    story = started()
    keep(story, A, 0.08)
    assert modes(story) == {"profile blindness"}
    assert "a profile is owed" in (refusal(story.state, A, plan("other"), story.state.head_of(A)) or "")
    assert isinstance(story.duty(A), Profile)
    story.profile(A)
    assert refusal(story.state, A, plan("other"), story.state.head_of(A)) is None


def test_a_large_change_that_is_no_rewrite_cannot_be_attributed() -> None:
    story = started()
    keep(story, A, 0.03, lines=Policy().one_change_lines + 1)
    assert "attribution loss" in modes(story)
    assert isinstance(story.duty(A), Profile)
    fine = started()
    keep(fine, A, 0.03, lines=Policy().one_change_lines + 1, rewrite="one design")
    keep(fine, B, 0.03, lines=Policy().one_change_lines)
    assert "attribution loss" not in modes(fine)


def test_a_workload_that_loses_behind_the_mean_is_named() -> None:
    story = started()
    keep(story, A, 0.03, small=0.08, large=-0.02)
    (finding,) = failure_modes(story.state)
    assert (finding.mode, finding.subject) == ("per-workload hiding", "large")


@pytest.mark.parametrize(
    ("errors", "drifts"), [((0.2, 0.4, 0.6), True), ((0.1, 0.2, 0.3), False), ((0.6, 0.4, 0.6), False)]
)
def test_errors_that_grow_towards_the_tolerance_close_their_category(errors: tuple[float, ...], drifts: bool) -> None:
    story = started()
    for worst in errors:
        keep(story, A, 0.03, worst=worst)
    assert ("correctness drift" in modes(story)) == drifts
    closed = refusal(story.state, B, plan("other"), "base") or ""
    assert ("closed to the team" in closed) == drifts
    keep(story, A, 0.03, worst=0.1)
    assert refusal(story.state, B, plan("other"), "base") is None


def test_the_same_work_twice_is_refused_and_told() -> None:
    story = started()
    story.experiment(A, Verdict.UNRESOLVED)
    story.state.reverted.clear()
    assert "ran this very change" in (refusal(story.state, B, plan(), "base") or "")
    assert refusal(story.state, B, plan(differs="another compiler"), "base") is None
    story.experiment(B, Verdict.UNRESOLVED, the=plan(differs="another compiler"))
    assert "duplicate work" in modes(story)


def test_what_was_run_on_a_base_is_known_while_somebody_may_start_from_it() -> None:
    story = started(agents=(A, B, "exploiter-2"))
    winner = keep(story, A, 0.05)
    story.experiment(A, Verdict.UNRESOLVED, the=plan("on its own win"))  # which waits to land
    story.experiment(B, Verdict.UNRESOLVED, the=plan("on the base"))
    assert set(story.state.symptoms.done) == {"base", f"c-{winner}"}
    story.give(B, Experiment(id="xb", base="base"))
    story.land(winner, "exploiter-2")
    assert set(story.state.symptoms.done) == {"base"}  # where an experiment of B is on its way
    story.say(B, ev.PlanAdmitted(experiment="xb", plan=plan("again"), commits=("c",)))
    story.judge(B, "xb", Verdict.UNRESOLVED)
    assert len(story.state.symptoms.done["base"]) == 3
    story.land(keep(story, A, 0.05), "exploiter-2")
    assert story.state.symptoms.done == {}


def test_polish_without_effect_closes_the_category_for_its_agent() -> None:
    story = started(Policy(close_category_after=99, stuck_after=99))
    for number in range(Policy().polish_after):
        story.experiment(A, Verdict.UNRESOLVED, 0.001, the=plan(f"t{number}"))
    assert "local-optimum polish" in modes(story)
    assert "switch category" in (refusal(story.state, A, plan("new"), "base") or "")
    assert refusal(story.state, B, plan("new"), "base") is None


def test_small_gains_that_are_not_found_again_are_chased_noise() -> None:
    story = started()
    for _ in range(Policy().chased_after):
        ident = keep(story, A, 0.012)
        story.prepare(ident)
        duty = story.ask(B, VerifyLanding)
        body = ev.LandingMeasured(duty=duty.id, experiment=ident, device="cpu:1", measurement=measured(0.0))
        story.say(B, body, ev.LandingRefused(experiment=ident, why="REVERT: nothing"))
    assert "noise chasing" in modes(story)
    again = story.ask(A, Baseline)
    story.say(A, story.baseline(again.id, "cpu:0"))
    assert "noise chasing" not in modes(story)


def test_a_main_that_measures_differently_than_before_has_drifted() -> None:
    story = started()
    story.land(keep(story, A, 0.03), B)
    for gain in (0.10, 0.20):
        body = ev.MainMeasured(
            duty="m", base="base", commit=story.state.main, device="cpu:0", estimate=estimate(gain),
            workloads={"small": estimate(gain)}, product=gain, agrees=True, measurement=measured(gain),
        )  # fmt: skip
        story.say(A, body)
    assert "drift of the incumbent" in modes(story)
    assert isinstance(story.duty(A), Baseline)


def test_the_recap_names_them() -> None:
    story = started()
    keep(story, A, 0.08)
    assert any("profile blindness" in line for line in recap(story.state))
