"""The catalog mind: deterministic, restart-safe, within the law, and honest in its plans."""

import pytest
from kernels import MATMUL, RMSNORM, SOFTMAX, TOUCHED
from workshops import NoWorkshop

from protocol.messages import Advice, Briefing, PastExperiment, Phase, Position, Proposal, Role, Runnerup, Verdict
from roles.minds.candidates import candidates
from roles.minds.catalog import CatalogMind
from roles.minds.mind import Mind, NothingToPropose
from roles.minds.registry import UnknownMind, make_mind
from roles.minds.scripted import NoChangeMind, ScriptedMind
from roles.techniques.catalog import card_named


def briefing(text: str, **changes) -> Briefing:
    values = {
        "agent": "explorer-0",
        "role": Role.EXPLORER,
        "number": 0,
        "task": "t",
        "language": "cpp",
        "numerics": "reference",
        "editable": {"kernel.cpp": text},
        "base": "b" * 40,
        "workloads": {},
        "phase": Phase.EARLY,
        "position": Position.UNKNOWN,
    }
    return Briefing(**{**values, **changes})


def past(proposal: Proposal, verdict: Verdict, number: int = 0, base: str = "b" * 40) -> PastExperiment:
    return PastExperiment(
        id=f"e{number}",
        agent="explorer-0",
        role=Role.EXPLORER,
        plan=proposal.plan,
        parameters=proposal.variants[0].parameters,
        verdict=verdict,
        reason="",
        gain=0.0,
        base=base,
        commit="c",
        screened=tuple((each.parameters, 0.01 * number) for number, each in enumerate(proposal.variants)),
    )


def attempt(mind: Mind, told: Briefing) -> Proposal | None:
    try:
        return mind.propose(told)
    except NothingToPropose:
        return None


@pytest.mark.parametrize(
    ("text", "role", "technique"),
    [
        (MATMUL, Role.EXPLORER, "register_block"),
        (SOFTMAX, Role.EXPLORER, "vector_exp"),
        (RMSNORM, Role.EXPLOITER, "split_accumulator"),
    ],
)
def test_begins_with_what_the_source_shows(text: str, role: Role, technique: str) -> None:
    assert CatalogMind().propose(briefing(text, role=role)).plan.technique == technique


@pytest.mark.parametrize("kernel", TOUCHED)
@pytest.mark.parametrize("role", Role)
def test_same_briefing_same_proposal(kernel: str, role: Role) -> None:
    told = briefing(TOUCHED[kernel][0], role=role, seed=7)
    assert CatalogMind().propose(told) == CatalogMind().propose(told)


def test_never_repeats_itself_and_says_when_it_is_done() -> None:
    mind, history, seen = CatalogMind(), [], set()
    while (proposal := attempt(mind, briefing(SOFTMAX, number=len(history), history=tuple(history)))) is not None:
        for variant in proposal.variants:
            key = (proposal.plan.technique, tuple(sorted(variant.parameters.items())))
            assert key not in seen
            assert variant.files["kernel.cpp"] != SOFTMAX
            seen.add(key)
        reverted = {each.plan.technique for each in history}
        assert bool(proposal.plan.differs) == (proposal.plan.technique in reverted)
        history.append(past(proposal, Verdict.REVERT, len(history)))
    assert 5 < len(history) < 100


def test_respects_the_law() -> None:
    mind = CatalogMind()
    closed = briefing(MATMUL, closed_categories=("register-blocking",), abandoned=("loop_interchange",))
    assert mind.propose(closed).plan.technique not in ("register_block", "loop_interchange")
    claimed = briefing(SOFTMAX, allowed_categories=("reductions",))
    assert mind.propose(claimed).plan.category == "reductions"
    strict = mind.propose(briefing(MATMUL, numerics="strict")).plan.technique
    assert strict == "loop_interchange"


def test_says_that_it_cannot_edit_other_languages() -> None:
    with pytest.raises(NothingToPropose, match="triton"):
        CatalogMind().propose(briefing("", language="triton"))


def test_research_finds_an_untried_technique_and_the_next_plan_cites_it() -> None:
    mind = CatalogMind()
    first = mind.propose(briefing(SOFTMAX))
    history = (past(first, Verdict.REVERT),)
    report = mind.research(briefing(SOFTMAX, history=history), "search-1")
    assert report.id == "search-1"
    assert report.technique != first.plan.technique
    card = card_named(report.technique)
    assert card is not None
    assert card.category == report.category
    assert card.source.locator in {source.locator for source in report.sources}
    plan = mind.propose(briefing(SOFTMAX, number=1, history=history, search=report)).plan
    assert (plan.cites, plan.technique) == ("search-1", report.technique)


def test_variants_are_bounded_and_differ() -> None:
    for count in (1, 2, 8):
        variants = CatalogMind().propose(briefing(MATMUL, max_variants=count)).variants
        assert 1 <= len(variants) <= count
        assert len({each.files["kernel.cpp"] for each in variants}) == len(variants)


def test_keeping_everything_stays_correct(workbench) -> None:
    for name in ("matmul_rows", "softmax_rows", "rmsnorm_double"):
        text, problem, shapes = TOUCHED[name]
        history: list[PastExperiment] = []
        for number in range(5):
            role = list(Role)[number % 2]
            told = briefing(text, role=role, number=number // 2, history=tuple(history), max_variants=1)
            proposal = attempt(CatalogMind(), told)
            if proposal is not None:
                history.append(past(proposal, Verdict.KEEP, number))
                text = proposal.variants[0].files["kernel.cpp"]
        assert history
        assert workbench.worst_error(text, problem, shapes) <= 1.0, text


def test_registry_names_what_it_knows() -> None:
    assert [make_mind(name, {}, NoWorkshop()).name for name in ("catalog", "noop")] == ["catalog", "noop"]
    with pytest.raises(UnknownMind, match="catalog, noop"):
        make_mind("oracle", {}, NoWorkshop())
    with pytest.raises(UnknownMind, match="depth"):
        make_mind("catalog", {"depth": 3}, NoWorkshop())


def test_no_change_changes_only_a_comment(workbench) -> None:
    proposal = NoChangeMind().propose(briefing(RMSNORM))
    text = proposal.variants[0].files["kernel.cpp"]
    assert text != RMSNORM
    assert text.startswith(RMSNORM.rstrip("\n"))
    assert workbench.worst_error(text, "rmsnorm", [[3, 5]]) <= 1.0


def test_a_script_ends() -> None:
    line = CatalogMind().propose(briefing(MATMUL))
    mind = ScriptedMind([line])
    assert mind.propose(briefing(MATMUL)) == line
    with pytest.raises(NothingToPropose, match="1 proposals"):
        mind.propose(briefing(MATMUL, number=1))


def test_a_preferred_technique_is_tried_first_and_a_cautioned_one_later() -> None:
    mind = CatalogMind()
    first, last = [each.plan.technique for each in _in_order(mind, SOFTMAX)][:2]
    told = Advice(technique=last, category="c", word="prefer", positives=2, negatives=0, gain=0.1)
    preferred = mind.propose(briefing(SOFTMAX, advice=(told,)))
    assert preferred.plan.technique == last
    assert "earlier campaigns: prefer, 2 for, 0 against" in preferred.plan.evidence
    warned = told.model_copy(update={"technique": first, "word": "caution", "negatives": 3})
    assert mind.propose(briefing(SOFTMAX, advice=(warned,))).plan.technique != first


def test_advice_ends_where_the_campaign_knows_better() -> None:
    mind = CatalogMind()
    usual = _in_order(mind, SOFTMAX)
    last = usual[1]
    told = Advice(technique=last.plan.technique, category="c", word="prefer", positives=2, negatives=0)
    after = briefing(SOFTMAX, advice=(told,), history=(past(last, Verdict.REVERT),), number=1)
    assert mind.propose(after).plan.technique != last.plan.technique


def _in_order(mind: Mind, text: str) -> list[Proposal]:
    """What the mind would propose, one technique after the other."""
    found: list[Proposal] = []
    while True:
        proposal = attempt(mind, briefing(text, abandoned=tuple(each.plan.technique for each in found)))
        if proposal is None:
            return found
        found.append(proposal)


def test_the_frontier_is_a_start_when_the_base_offers_nothing_new() -> None:
    mind, nothing = CatalogMind(), "// nothing to see here\n"
    start = Runnerup(experiment="E7", technique="tile", gain=0.2, files={"kernel.cpp": MATMUL})
    told = briefing(nothing, role=Role.EXPLOITER, frontier=(start,))
    found = mind.propose(told)
    assert found.plan.change.endswith("on top of tile of E7")
    assert attempt(mind, briefing(nothing, role=Role.EXPLOITER)) is None


KNOBS = """\
constexpr int wide = 1;  // knob: wide in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
constexpr int other = 1;  // knob: other in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
extern "C" void solve(float* x) { x[0] = wide + other; }
"""


def knob_rounds(text: str, rounds: int) -> tuple[list[PastExperiment], str]:
    """Races of knob settings on one text, of which the widest is the fastest, and the fastest text."""
    history: list[PastExperiment] = []
    best = (float("-inf"), "")
    for number in range(rounds):
        told = briefing(text, role=Role.EXPLOITER, number=number, history=tuple(history), max_variants=8)
        proposal = CatalogMind().propose(told)
        gains = [float(each.parameters["wide"]) / 10 for each in proposal.variants]
        top = max(range(len(gains)), key=gains.__getitem__)
        best = max(best, (gains[top], proposal.variants[top].files["kernel.cpp"]))
        screened = tuple((each.parameters, gain) for each, gain in zip(proposal.variants, gains, strict=True))
        one = past(proposal, Verdict.KEEP, number)
        update = {"parameters": proposal.variants[top].parameters, "gain": gains[top], "screened": screened}
        history.append(one.model_copy(update=update))
    return history, best[1]


def test_what_settings_did_is_still_known_when_the_fastest_of_them_is_the_base() -> None:
    history, fastest = knob_rounds(KNOBS, 3)
    forgotten = [one.model_copy(update={"screened": (), "parameters": {}}) for one in history]
    proposed = [
        CatalogMind().propose(
            briefing(fastest, role=Role.EXPLOITER, number=3, history=tuple(known), max_variants=8, base="d" * 40)
        )
        for known in (history, forgotten)
    ]
    wide = [[each.parameters["wide"] for each in one.variants] for one in proposed]
    assert sum(value >= 10 for value in wide[0]) > sum(value >= 10 for value in wide[1])
    known = {each["text"] for one in history for each, _ in one.screened}
    assert not known & {each.parameters["text"] for each in proposed[0].variants}


def test_settings_of_constants_are_many_and_all_of_them_are_told_to_the_next() -> None:
    def asked(history: tuple[PastExperiment, ...]) -> Proposal:
        law = {"max_variants": 4, "max_settings": 24}
        return CatalogMind().propose(briefing(KNOBS, role=Role.EXPLOITER, number=len(history), history=history, **law))

    first = asked(())
    gains = [0.1 * float(each.parameters["wide"]) for each in first.variants]
    screened = tuple((each.parameters, gain) for each, gain in zip(first.variants, gains, strict=True))
    one = past(first, Verdict.REVERT).model_copy(update={"screened": screened})
    second = asked((one,))
    wide = [[float(each.parameters["wide"]) for each in proposal.variants] for proposal in (first, second)]
    assert len(first.variants) == len(second.variants) == 24
    assert sum(wide[1]) > 1.2 * sum(wide[0])
    texts = {each.parameters["text"] for proposal in (first, second) for each in proposal.variants}
    assert len(texts) == 48
    structural = CatalogMind().propose(briefing(MATMUL, max_variants=2, max_settings=24))
    assert len(structural.variants) <= 2


def test_an_agent_alone_does_the_other_roles_work_too() -> None:
    told = briefing(KNOBS + RMSNORM.replace('extern "C" void solve', 'extern "C" void other'))
    scores = [
        {each.card.name: each.score for each in candidates(told.model_copy(update={"team_size": size}))}
        for size in (1, 2)
    ]
    assert scores[0]["knobs"] > 5 * scores[1]["knobs"] > 0
