"""The catalog mind in whole campaigns, without a device: a synthetic judge, two agents, every CUDA example.

What is tested is the supply of ideas: it must outlast the budget for both agents, whatever the judge says, without one
text being proposed twice and without two agents running the same text at the same time.
"""

import zlib

import pytest
from kernels import EXAMPLES
from test_catalog_mind import attempt, briefing, past

from protocol.counters import Streaks, closed_categories
from protocol.messages import PastExperiment, Phase, Proposal, Role, Verdict
from protocol.policy import Policy
from roles.minds.candidates import candidates
from roles.minds.catalog import CatalogMind
from roles.minds.variants import TEXT, variants_of
from roles.techniques.card import Tier
from roles.techniques.catalog import card_named

LAW = Policy()
TEAM = ("explorer-1", "exploiter-1")
ROLES: dict[str, Role] = dict(zip(TEAM, (Role.EXPLORER, Role.EXPLOITER), strict=True))
NEEDED = {
    "matmul": 40,
    "softmax": 30,
    "rmsnorm": 30,
    "reduction": 30,
    "transpose": 25,
    "elementwise": 30,
}  # turns of both


def text_of(example: str) -> str:
    return (EXAMPLES / f"{example}_cuda" / f"{example}.cu").read_text()


class Campaign:
    """Agents in turn, each on main; a synthetic cost of texts decides, and a win lands at once."""

    def __init__(self, text: str, kept_in_every: int, claims: dict[str, tuple[str, ...]] | None = None) -> None:
        self.text, self.base, self.kept_in_every = text, 0, kept_in_every
        self.claims = claims or {}
        self.history: list[PastExperiment] = []
        self.streaks = {name: Streaks() for name in TEAM}
        self.texts: list[str] = []

    def turn(self) -> dict[str, Proposal]:
        """Both agents propose from the same history; then both are judged."""
        proposals = {name: found for name in TEAM if (found := self._ask(name)) is not None}
        if len({(each.plan.technique, each.plan.change) for each in proposals.values()}) < len(proposals):
            second = self._ask(TEAM[1], ("the other agent is running this very change",))
            proposals = {TEAM[0]: proposals[TEAM[0]], **({TEAM[1]: second} if second else {})}
        for name, proposal in proposals.items():
            self._judge(name, proposal)
        return proposals

    def _ask(self, name: str, refused: tuple[str, ...] = ()) -> Proposal | None:
        mine = self.streaks[name]
        told = briefing(
            "",
            editable={"kernel.cu": self.text},
            language="cuda",
            agent=name,
            role=ROLES[name],
            place=TEAM.index(name),
            team_size=len(TEAM),
            number=mine.experiments,
            seed=1000 * TEAM.index(name) + mine.experiments,
            history=tuple(self.history),
            base=f"{self.base:040d}",
            allowed_categories=self.claims.get(name, ()),
            closed_categories=closed_categories(LAW, mine),
            refused=refused,
            phase=Phase.PLATEAU if mine.without_keep >= LAW.plateau_after else Phase.EARLY,
        )
        return attempt(CatalogMind(), told)

    def _judge(self, name: str, proposal: Proposal) -> None:
        mine, category = self.streaks[name], proposal.plan.category
        number = len(self.history)
        kept = zlib.crc32(proposal.variants[0].files["kernel.cu"].encode()) % self.kept_in_every == 0
        told = past(proposal, Verdict.KEEP if kept else Verdict.REVERT, number, f"{self.base:040d}")
        self.history.append(told.model_copy(update={"agent": name, "role": ROLES[name]}))
        self.texts += [str(each.parameters[TEXT]) for each in proposal.variants]
        mine.experiments += 1
        if kept:
            mine.category, mine.category_reverts, mine.without_keep = "", 0, 0
            self.text, self.base = proposal.variants[0].files["kernel.cu"], number + 1
        else:
            mine.category_reverts = mine.category_reverts + 1 if mine.category == category else 1
            mine.category, mine.without_keep = category, mine.without_keep + 1


def assert_outlasts(example: str, kept_in_every: int, turns: int) -> None:
    campaign = Campaign(text_of(example), kept_in_every)
    for _ in range(turns):
        proposals = campaign.turn()
        assert set(proposals) == set(TEAM), f"after {len(campaign.history)}: {sorted(proposals)}"
    assert len(set(campaign.texts)) == len(campaign.texts)
    assert len({each.plan.technique for each in campaign.history}) >= 8


@pytest.mark.parametrize("example", ["matmul", "transpose"])  # all in the slow test below
def test_ideas_outlast_the_budget_when_some_win(example: str) -> None:
    assert_outlasts(example, 4, 12)


@pytest.mark.slow
@pytest.mark.parametrize("kept_in_every", [10**9, 4], ids=["nothing-wins", "wins"])
@pytest.mark.parametrize("example", NEEDED)
def test_ideas_outlast_the_whole_budget(example: str, kept_in_every: int) -> None:
    assert_outlasts(example, kept_in_every, NEEDED[example])


@pytest.mark.parametrize("example", NEEDED)
def test_two_agents_with_disjoint_categories_both_have_plenty(example: str) -> None:
    found = candidates(briefing("", editable={"kernel.cu": text_of(example)}, language="cuda"))
    tiers: dict[str, Tier] = {each.card.category: each.card.tier for each in reversed(found)}
    names = sorted(tiers, key=lambda category: (tiers[category].value, category))
    claims = {TEAM[0]: tuple(names[0::2]), TEAM[1]: tuple(names[1::2])}
    campaign = Campaign(text_of(example), 10**9, claims)
    for _ in range(6):
        assert set(campaign.turn()) == set(TEAM)
    assert all(each.plan.category in claims[each.agent] for each in campaign.history)


def test_a_search_chooses_what_has_a_site_now() -> None:
    campaign = Campaign(text_of("matmul"), 10**9)
    for number in range(4):
        campaign.turn()
        told = briefing(
            "",
            editable={"kernel.cu": campaign.text},
            language="cuda",
            agent=TEAM[0],
            team_size=len(TEAM),
            number=number,
            history=tuple(campaign.history),
        )
        report = CatalogMind().research(told, "s1")
        card = card_named(report.technique)
        assert card is not None
        assert card.transform is not None
        at = [each for each in candidates(told) if each.card.name == report.technique]
        assert any(variants_of(each, told) for each in at)
        plan = CatalogMind().propose(told.model_copy(update={"search": report})).plan
        assert (plan.technique, plan.cites) == (report.technique, "s1")


def test_shares_of_one_site_are_disjoint_and_cover_it() -> None:
    campaign = Campaign(text_of("transpose"), 10**9)
    campaign.turn()
    first = campaign.history[0]
    texts: dict[str, set[str]] = {}
    for name in TEAM:
        told = briefing(
            "",
            editable={"kernel.cu": campaign.text},
            language="cuda",
            agent=name,
            role=Role.EXPLOITER,
            place=TEAM.index(name),
            team_size=len(TEAM),
            history=(first,),
            max_variants=8,
        )
        site = next(each for each in candidates(told) if each.card.name == first.plan.technique)
        texts[name] = {str(each.parameters[TEXT]) for each in variants_of(site, told)}
    assert all(texts.values())
    assert not texts[TEAM[0]] & texts[TEAM[1]]
