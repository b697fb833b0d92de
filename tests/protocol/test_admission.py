"""Which plans are refused, each with a sentence that names the remedy."""

import pytest
from pydantic import ValidationError
from story import A, B, Story, plan, started

from protocol import events as ev
from protocol.admission import refusal
from protocol.messages import Experiment, Plan, Proposal, SearchReport, Source, Verdict


def test_a_first_plan_is_admitted() -> None:
    assert refusal(started().state, A, plan(), "base") is None


def test_nothing_is_admitted_while_a_search_is_owed() -> None:
    story = _stuck()
    assert "search is owed" in str(refusal(story.state, A, plan("new", "new"), "base"))
    assert refusal(story.state, B, plan("new", "new"), "base") is None


def test_the_plan_after_a_search_must_cite_it() -> None:
    story = _stuck()
    cited = story.search(A)
    assert f"must cite search '{cited}'" in str(refusal(story.state, A, plan("new", "new"), "base"))
    assert "must cite" in str(refusal(story.state, A, plan("new", "new", cites="s999"), "base"))
    assert refusal(story.state, A, plan("new", "new", cites=cited), "base") is None
    assert refusal(story.state, B, plan("new", "new"), "base") is None


def test_a_search_that_nobody_reported_cannot_be_cited() -> None:
    assert "nobody reported" in str(refusal(started().state, A, plan(cites="s7"), "base"))


def test_a_source_that_the_cited_search_did_not_read_is_refused() -> None:
    story = _stuck()
    cited = story.search(A)
    assert "has no source 'doi:9'" in str(refusal(story.state, A, plan("new", "new", cites=cited, source="doi:9"), "b"))
    assert "has no source" in str(refusal(story.state, B, plan("new", "new", source="doi:1"), "b"))
    assert refusal(story.state, A, plan("new", "new", cites=cited, source="doi:2"), "b") is None


@pytest.mark.parametrize("field", ["queries", "sources", "technique", "category", "why"])
def test_a_search_report_says_what_was_asked_read_chosen_and_why(field: str) -> None:
    whole = {"id": "s1", "queries": ("q",), "sources": (Source(title="a paper", locator="doi:1"),)}
    whole |= dict.fromkeys(("technique", "category", "why"), "words")
    assert SearchReport.model_validate(whole)
    with pytest.raises(ValidationError):
        SearchReport.model_validate(whole | {field: () if field in ("queries", "sources") else ""})
    with pytest.raises(ValidationError):
        Source(title="a paper", locator="")


def test_an_abandoned_approach_is_refused_for_everybody() -> None:
    story = started()
    for index in range(3):
        story.experiment(A, Verdict.CRASHED, the=plan("mma", f"c{index}"))
    assert "abandoned" in str(refusal(story.state, B, plan("mma", "new", differs="smaller tiles"), "base"))


def test_a_closed_category_is_refused_for_its_agent_alone() -> None:
    story = started()
    for index in range(3):
        story.experiment(A, Verdict.REVERT, the=plan(f"t{index}", "tiling"))
    cited = story.search(A)
    assert "switch category" in str(refusal(story.state, A, plan("new", "tiling", cites=cited), "base"))
    assert refusal(story.state, A, plan("new", "memory", cites=cited), "base") is None
    assert refusal(story.state, B, plan("new", "tiling"), "base") is None


@pytest.mark.parametrize("verdict", [v for v in Verdict if not v.kept and v is not Verdict.LOST])
def test_a_technique_that_the_team_reverted_must_say_what_is_different(verdict: Verdict) -> None:
    story = started()
    story.experiment(A, verdict, the=plan("unroll"))
    assert "what is different" in str(refusal(story.state, B, plan("unroll"), "base"))
    assert refusal(story.state, B, plan("unroll", differs="by 8, not 4"), "base") is None


@pytest.mark.parametrize("verdict", [Verdict.KEEP, Verdict.LOST])
def test_a_technique_that_was_kept_or_never_judged_needs_no_difference(verdict: Verdict) -> None:
    story = started()
    story.experiment(A, verdict, the=plan("unroll"))
    assert refusal(story.state, B, plan("unroll"), "another base") is None


@pytest.mark.parametrize(
    "field",
    [
        "technique",
        "category",
        "bottleneck",
        "evidence",
        "change",
        "mechanism",
        "expected_gain",
        "disproof",
        "fallback",
        "cell",
    ],
)
def test_every_required_field_of_a_plan_is_required(field: str) -> None:
    words = plan().model_dump()
    with pytest.raises(ValidationError):
        Plan.model_validate({name: word for name, word in words.items() if name != field})
    if field != "expected_gain":
        with pytest.raises(ValidationError):
            Plan.model_validate(words | {field: ""})


@pytest.mark.parametrize("dollars", [-1.0, float("nan"), float("inf")])
def test_money_cannot_be_given_back_or_made_up(dollars: float) -> None:
    with pytest.raises(ValidationError):
        Proposal.model_validate({"plan": plan(), "variants": [{"files": {"k.cpp": ""}}], "dollars": dollars})


def _stuck() -> Story:
    story = started()
    for index in range(3):
        story.experiment(A, Verdict.REVERT, the=plan(f"t{index}", f"c{index}"))
    return story


def test_two_agents_do_not_run_the_same_change_on_the_same_base() -> None:
    story = started()
    duty = story.ask(A, Experiment)
    story.say(A, ev.PlanAdmitted(experiment=duty.id, plan=plan("unroll"), commits=("c",)))
    assert "running this very change" in str(refusal(story.state, B, plan("unroll"), duty.base))
    assert refusal(story.state, B, plan("unroll"), "another base") is None
    assert refusal(story.state, B, plan("unroll", change="another loop"), duty.base) is None
    assert refusal(story.state, A, plan("unroll"), duty.base) is None
