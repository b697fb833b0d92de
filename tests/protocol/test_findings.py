"""Findings: one for everything that the team learnt, and the most relevant first."""

from story import A, B, plan, started

from protocol import events as ev
from protocol.briefing import briefing_of
from protocol.findings import ranked
from protocol.messages import Direction, Verdict
from protocol.policy import Policy

LAW = Policy(max_experiments=None, briefing_findings=4)


def told(story, agent: str) -> list[tuple[str, str]]:
    return [(finding.kind, finding.technique) for finding in ranked(story.state, agent)]


def test_every_result_is_a_finding_with_its_evidence() -> None:
    story = started(LAW)
    ident = story.experiment(A, Verdict.KEEP, 0.1, plan("tile", "tiles"))
    story.land(ident, B)
    story.experiment(B, Verdict.REVERT, -0.02, plan("unroll", "loops"))
    story.experiment(B, Verdict.LOST, 0.0, plan("lost", "loops"))
    kept, landed, reverted = story.state.findings
    assert (kept.kind, kept.positive, kept.device, kept.commit) == ("gain", True, "cpu:0", f"c-{ident}")
    assert kept.gain is not None
    assert kept.low is not None
    assert kept.low < kept.gain
    assert kept.source.startswith(f"experiment {ident}: KEEP")
    assert (landed.kind, landed.commit, landed.positive) == ("landed", f"m-{ident}", True)
    assert landed.device == "cpu:1", "where it was measured on main"
    assert (reverted.kind, reverted.positive, reverted.category) == ("no gain", False, "loops")


def test_what_did_not_reach_main_and_what_is_wrong_are_findings_too() -> None:
    story = started(LAW)
    ident = story.experiment(A, Verdict.KEEP, 0.1)
    story.say("", ev.LandingRefused(experiment=ident, why="slower on the merged tree"))
    story.experiment(A, Verdict.INCORRECT)
    assert [finding.kind for finding in story.state.findings] == ["gain", "not landed", "wrong"]
    assert story.state.findings[1].source == f"landing of {ident}: slower on the merged tree"


def test_a_search_is_a_finding_with_its_source() -> None:
    story = started(LAW)
    for _ in range(3):
        story.experiment(A, Verdict.REVERT)
    ident = story.search(A)
    assert story.state.findings[-1].kind == "search"
    assert story.state.findings[-1].source == f"search {ident}: paper, doi:1"


def test_its_direction_comes_first_then_tampering_then_gains_and_the_newest_of_each() -> None:
    story = started(LAW)
    for technique, category, verdict in (
        ("near-old", "loops", Verdict.REVERT),
        ("cheat", "memory", Verdict.TAMPERED),
        ("near-new", "loops", Verdict.REVERT),
        ("far-gain", "memory", Verdict.KEEP),
        ("far", "memory", Verdict.REVERT),
    ):
        story.experiment(B, verdict, 0.03, plan(technique, category))
    claim = Direction(id="d1", name="loops", allowed=("loops",), owner=A, round=1)
    story.say(A, ev.DirectionClaimed(direction=claim))
    wanted = [("no gain", "near-new"), ("no gain", "near-old"), ("tampered", "cheat"), ("gain", "far-gain")]
    assert told(story, A) == wanted, "no more than the law's number"
    assert [f.technique for f in briefing_of(story.state, A, "base").findings] == [name for _, name in wanted]
    assert told(story, B)[0] == ("tampered", "cheat")
