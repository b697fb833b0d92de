"""What the law puts before an agent's own idea: heavy lifts, the tactical sweep, re-checks and research."""

from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.admission import refusal
from protocol.briefing import briefing_of
from protocol.messages import (
    Compared,
    Excuse,
    Experiment,
    HeavyLift,
    Insight,
    PassedOver,
    Position,
    Recheck,
    RecheckReport,
    Research,
    ResearchReport,
    Strategy,
    SweepItem,
    Verdict,
)
from protocol.policy import Policy
from protocol.sweep import exhausted

FREE = Policy(stuck_after=99, close_category_after=99, polish_after=99, research_after=99, plateau_after=3, mid_from=1)


def told(policy: Policy, strategy: Strategy) -> Story:
    story = started(policy)
    story.state.start = story.state.started.model_copy(update={"strategy": strategy})
    return story


def reverts(story: Story, count: int, category: str = "loops", gain: float = -0.2) -> None:
    for _ in range(count):
        number = story.state.duties
        story.experiment(A, Verdict.REVERT, gain, the=plan(f"t{number}", category))


def passed(name: str) -> PassedOver:
    return PassedOver(name=name, kind=Excuse.HARDWARE, reason="no such unit here")


def test_on_a_plateau_a_heavy_lift_is_taken_or_passed_over_with_a_reason() -> None:
    lift = HeavyLift(technique="fuse", category="fusion")
    story = told(FREE.model_copy(update={"sweep_after": 99}), Strategy(heavy_lifts={Position.UNKNOWN: (lift,)}))
    assert refusal(story.state, A, plan("small"), "base") is None
    reverts(story, 3)
    assert "what stands against fuse" in (refusal(story.state, A, plan("small"), "base") or "")
    assert briefing_of(story.state, A, "base").lifts == (lift,)
    assert refusal(story.state, A, plan("small", passed_over=(passed("fuse"),)), "base") is None
    assert refusal(story.state, A, plan("fuse", "fusion"), "base") is None
    story.experiment(A, Verdict.REVERT, the=plan("fuse", "fusion"))
    assert refusal(story.state, A, plan("small"), "base") is None


def test_the_sweep_goes_item_by_item_in_its_order() -> None:
    items = (SweepItem(name="one", title="first", techniques=("pad",)), SweepItem(name="two", title="second"))
    story = told(FREE, Strategy(sweep=items))
    assert refusal(story.state, A, plan("small"), "base") is None
    reverts(story, 2)
    assert "next item is 'one'" in (refusal(story.state, A, plan("small"), "base") or "")
    assert "next item is 'one'" in (refusal(story.state, A, plan("small", sweep="two"), "base") or "")
    assert "use one of pad" in (refusal(story.state, A, plan("small", sweep="one"), "base") or "")
    assert refusal(story.state, A, plan("pad", sweep="one"), "base") is None
    story.experiment(A, Verdict.REVERT, the=plan("pad", sweep="one"))
    assert refusal(story.state, A, plan("small", sweep="two"), "base") is None
    assert not exhausted(story.state)
    story.experiment(A, Verdict.REVERT, the=plan("any", sweep="two"))
    assert exhausted(story.state)
    assert refusal(story.state, A, plan("small"), "base") is None


def test_a_sweep_item_may_be_passed_over_with_a_reason_and_a_keep_ends_the_sweep() -> None:
    story = told(FREE, Strategy(sweep=(SweepItem(name="one", title="first"),)))
    reverts(story, 2)
    assert refusal(story.state, A, plan("small", passed_over=(passed("one"),)), "base") is None
    story.experiment(A, Verdict.KEEP, 0.03, the=plan("good"))
    assert refusal(story.state, A, plan("small"), story.state.head_of(A)) is None


def test_a_technique_with_field_evidence_is_rechecked_before_it_is_closed() -> None:
    story = told(FREE, Strategy(field_evidence={"unroll": "1.2x on a card"}))
    ident = story.experiment(A, Verdict.REVERT, -0.2)
    assert refusal(story.state, B, plan(differs=""), "elsewhere") is None, "open until it is re-checked"
    duty = story.ask(A, Recheck)
    assert (duty.experiment, duty.technique) == (ident, "unroll")
    line = Compared(what="alignment", card="16", seen="4", holds=False)
    report = {"id": duty.id, "experiment": ident, "technique": "unroll", "compared": (line,)}
    story.say(A, ev.RecheckReported(report=RecheckReport.model_validate(report)))
    assert "was reverted before" in (refusal(story.state, B, plan(), "elsewhere") or "")
    assert not isinstance(story.duty(A), Recheck)


def test_a_recheck_that_finds_another_fault_leaves_the_technique_open() -> None:
    story = told(FREE, Strategy(field_evidence={"unroll": "1.2x on a card"}))
    ident = story.experiment(A, Verdict.INCORRECT)
    duty = story.ask(A, Recheck)
    line = Compared(what="alignment", card="16", seen="4", holds=False)
    report = {"id": duty.id, "experiment": ident, "technique": "unroll", "compared": (line,), "suspect": "alignment"}
    story.say(A, ev.RecheckReported(report=RecheckReport.model_validate(report)))
    assert refusal(story.state, B, plan(), "elsewhere") is None


def test_an_uncatalogued_technique_is_not_rechecked() -> None:
    story = told(FREE, Strategy())
    story.experiment(A, Verdict.REVERT, -0.2)
    assert isinstance(story.duty(A), Experiment)


def test_experiments_that_tell_nothing_apart_owe_research_and_everybody_is_told() -> None:
    story = told(FREE.model_copy(update={"research_after": 3, "sweep_after": 99}), Strategy())
    reverts(story, 2, gain=-0.01)
    assert not isinstance(story.duty(A), Research)
    reverts(story, 1, gain=-0.02)
    duty = story.ask(A, Research)
    assert not isinstance(story.duty(B), Research), "one reading is enough"
    found = Insight(what="nothing moves", why="bandwidth", next="fuse")
    story.say(A, ev.ResearchReported(report=ResearchReport(id=duty.id, insights=(found,))))
    assert briefing_of(story.state, B, "base").insights == (found,)
    assert not isinstance(story.duty(A), Research)


def test_spread_experiments_owe_no_research() -> None:
    story = told(FREE.model_copy(update={"research_after": 3, "sweep_after": 99}), Strategy())
    for gain in (-0.01, -0.2, -0.4):
        reverts(story, 1, gain=gain)
    assert not isinstance(story.duty(A), Research)


def test_incorrect_on_different_approaches_owes_research() -> None:
    story = told(FREE.model_copy(update={"sweep_after": 99}), Strategy())
    for number in (1, 1, 2):
        story.experiment(A, Verdict.INCORRECT, the=plan(f"t{number}", differs="more"))
    assert not isinstance(story.duty(A), Research)
    story.experiment(A, Verdict.INCORRECT, the=plan("t3"))
    assert isinstance(story.duty(A), Research)
