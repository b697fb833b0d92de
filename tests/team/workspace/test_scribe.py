"""Notes in the hub: on a branch of their own, the same from the same ledger, and no obstacle to kernel commits."""

from pathlib import Path

import pytest
from repositories import git, make_repository

from protocol import events as ev
from protocol.messages import Role
from protocol.policy import Policy
from protocol.state import CampaignState, apply
from team import scribe
from team.workspace.command import GitFailed
from team.workspace.hub import Hub


def told(hub: Hub, *bodies: ev.AnyBody) -> CampaignState:
    """A campaign on this hub, in which these events happened."""
    member = ev.Member(name="explorer-1", role=Role.EXPLORER, mind="catalog", device="cpu:0")
    start = ev.CampaignStarted(
        campaign="c", task="t", operator="t", language="cpp", numerics="reference", task_path=hub.task,
        repository="/r", commit=hub.main, workloads={}, weights={}, editable=("kernel.cpp",), policy=Policy(),
        members=(member,), seed=1,
    )  # fmt: skip
    state = CampaignState()
    for seq, body in enumerate((start, *bodies), 1):
        apply(state, ev.Event(seq=seq, time=1_700_000_000.0 + seq, agent="", body=body))
    return state


ROUND = ev.RoundEnded(number=1, recap=("explorer-1: 8 experiments",), outcome="C")


def test_notes_are_a_branch_of_their_own_that_the_same_ledger_writes_alike(any_task: Path, tmp_path: Path) -> None:
    hub, twin = Hub.create(tmp_path / "run", any_task), Hub.create(tmp_path / "twin", any_task)
    main = hub.main
    page = scribe.due(told(hub, ROUND))
    assert page is not None
    written = scribe.write(hub, page)
    assert scribe.write(twin, page) == written, "the same ledger, the same commit"
    assert hub.main == main, "main carries kernels alone"
    assert not hub.git.succeeds("merge-base", main, written.commit)
    paths = hub.git.names("ls-tree", "-r", "-z", "--name-only", written.commit)
    folder = "" if hub.task == "." else f"{hub.task}/"
    assert f"{folder}notes/perf_log.md" in paths
    assert f"{folder}team_notes/round1_results.md" in paths
    assert all(path.startswith(folder) for path in paths)
    shown = hub.git.text("show", f"{written.commit}:{folder}team_notes/round1_results.md")
    assert "- explorer-1: 8 experiments" in shown


def test_a_second_page_keeps_what_the_first_one_wrote(hub: Hub) -> None:
    state = told(hub, ROUND)
    page = scribe.due(state)
    assert page is not None
    first = scribe.write(hub, page)
    apply(state, ev.Event(seq=9, time=1_700_000_009.0, agent="", body=first))
    assert scribe.due(state) is None, "nothing landed and no round ended since"
    apply(state, ev.Event(seq=10, time=1_700_000_010.0, agent="", body=ROUND.model_copy(update={"number": 2})))
    page = scribe.due(state)
    assert page is not None
    second = scribe.write(hub, page)
    assert hub.git.text("rev-parse", f"{second.commit}^") == first.commit
    names = set(hub.git.names("ls-tree", "-r", "-z", "--name-only", second.commit))
    assert names > set(hub.git.names("ls-tree", "-r", "-z", "--name-only", first.commit))


def test_main_at_the_beginning_of_each_round_and_every_branch_are_tagged(hub: Hub) -> None:
    state = told(hub, ROUND, ev.TeamPhaseEnded(why="dry", branches={"explorer-1": hub.main}))
    page = scribe.due(state)
    assert page is not None
    scribe.write(hub, page)
    assert set(hub.tags()) == {"team-baseline-r1", "team-baseline-r2", f"team-end-explorer-1-{hub.main[:10]}"}


def test_notes_that_cannot_be_written_leave_the_branch_and_are_on_record(hub: Hub) -> None:
    state = told(hub, ROUND)
    page = scribe.due(state)
    assert page is not None
    lock = hub.path / "refs" / "heads" / "notes.lock"
    lock.touch()
    with pytest.raises(GitFailed):
        scribe.write(hub, page)
    apply(state, ev.Event(seq=9, time=1.0, agent="", body=ev.NotesFailed(why="locked")))
    assert state.notes_failed == "locked"
    assert scribe.due(state) is not None, "tried again"
    lock.unlink()
    apply(state, ev.Event(seq=10, time=1.0, agent="", body=scribe.write(hub, page)))
    assert state.notes_failed == ""


def test_the_users_repository_is_a_stranger_to_notes(tmp_path: Path) -> None:
    task = make_repository(tmp_path / "user", "k")
    hub = Hub.create(tmp_path / "run", task)
    page = scribe.due(told(hub, ROUND))
    assert page is not None
    scribe.write(hub, page)
    assert "notes" not in git(task, "for-each-ref")
