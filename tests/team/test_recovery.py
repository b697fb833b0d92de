"""What may be wrong on disk when a campaign goes on: each case is mended and told, or refused with its remedy."""

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocol import events as ev
from protocol.ledger import Ledger, LedgerError
from protocol.messages import (
    Decision,
    Estimate,
    Experiment,
    Measurement,
    Outcome,
    Plan,
    Restart,
    Role,
    Verdict,
    VerifyLanding,
    WorkloadCheck,
)
from protocol.pairs import Pair
from protocol.policy import Policy
from protocol.snapshot import restore
from protocol.state import CampaignState
from protocol.steering import Request
from team import recovery
from team.coordinator import Coordinator
from team.errors import UserError
from team.launch import _held
from team.recovery import examine, mend, room
from team.runs import Run
from team.workspace.hub import Hub

GAIN = Estimate(gain=0.5, low=0.4, high=0.6, pairs=8, restarts=2)
KEEP = Decision(state="keep", reason="faster", overall=GAIN, workloads={"w": GAIN})
PAIR = Pair(candidate_first=True, base_ns=2.0, candidate_ns=1.0)
MEASURED = Measurement(
    outcome=Outcome.MEASURED,
    restarts=(Restart.of({"w": (PAIR,)}),),
    checks=(WorkloadCheck(workload="w", checks=1, worst=0.1),),
)
WORDS = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback", "category", "cell"), "words")
PLAN = Plan(technique="unroll", change="unroll", expected_gain=0.1, **WORDS)


class Campaign:
    """A run folder with a hub and a ledger, in which one experiment was kept and its landing verified."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.user.mkdir()
        for name, text in (("task.toml", "name = 'x'\n"), ("kernel.cpp", "// kernel\n"), ("reference.py", "#\n")):
            (self.user / name).write_text(text)
        for words in (("init", "-q", "-b", "trunk"), ("add", "."), ("commit", "-q", "-m", "first")):
            git(self.user, *words)
        self.run = Run(folder / "run")
        self.hub = Hub.create(self.run.folder, self.user)
        self.baseline = self.hub.main
        self.candidate = self.commit("// faster\n")
        with Ledger(self.run.ledger, writer=True) as ledger:
            for agent, body in self._story():
                ledger.append(1000.0, [(agent, body)])

    def commit(self, text: str, parent: str = "") -> str:
        made = self.hub.commit(parent or self.baseline, {"kernel.cpp": text}, "change", {}, ("kernel.cpp",))
        self.hub.anchor(f"experiments/{made[:16]}", made)
        return made

    def _story(self) -> list[tuple[str, ev.AnyBody]]:
        member = ev.Member(name="a", role=Role.EXPLORER, mind="noop", device="cpu:0")
        start = ev.CampaignStarted(
            campaign="c", task="t", operator="t", language="cpp", numerics="reference", task_path=".",
            repository=str(self.user), commit=self.baseline, workloads={"w": {}}, weights={"w": 1.0},
            editable=("kernel.cpp",), policy=Policy(), members=(member,), seed=0,
        )  # fmt: skip
        report = ev.ExperimentReported(
            experiment="x1", commit=self.candidate, parameters={}, screened=(), measurement=MEASURED
        )
        judged = ev.ExperimentJudged(experiment="x1", verdict=Verdict.KEEP, reason="faster", decision=KEEP)
        prepared = ev.LandingPrepared(experiment="x1", candidate=self.candidate, main=self.baseline, how="cherry-pick")
        duty = VerifyLanding(id="v2", experiment="x1", candidate=self.candidate, main=self.baseline)
        verified = ev.LandingMeasured(duty="v2", experiment="x1", device="cpu:0", measurement=MEASURED, decision=KEEP)
        return [
            ("", start),
            ("a", ev.DutyGiven(ask="1", incarnation="i", duty=Experiment(id="x1", base=self.baseline))),
            ("a", ev.PlanAdmitted(experiment="x1", plan=PLAN, commits=(self.candidate,))),
            ("a", report),
            ("a", judged),
            ("", prepared),
            ("a", ev.DutyGiven(ask="2", incarnation="i", duty=duty)),
            ("a", verified),
        ]

    def state(self) -> CampaignState:
        with Ledger(self.run.ledger) as ledger:
            return restore(ledger)[0]

    def mended(self) -> tuple[str, ...]:
        return mend(self.hub, self.state())

    def move_main(self, commit: str) -> None:
        git(self.hub.path, "update-ref", "refs/heads/main", commit)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


def test_a_sound_campaign_needs_nothing(campaign: Campaign) -> None:
    examine(campaign.run)
    assert campaign.mended() == ()
    assert campaign.hub.main == campaign.baseline


def test_a_kill_between_the_move_of_main_and_its_event_is_no_trouble(campaign: Campaign) -> None:
    campaign.move_main(campaign.candidate)
    assert campaign.mended() == ()
    assert campaign.hub.main == campaign.candidate


def test_a_main_that_a_hand_moved_is_put_back_and_its_commit_kept(campaign: Campaign) -> None:
    stray = campaign.commit("// by hand\n")
    campaign.move_main(stray)
    (said,) = campaign.mended()
    assert stray[:12] in said
    assert "no verification" in said
    assert "have an agent propose" in said
    assert campaign.hub.main == campaign.baseline
    assert campaign.hub.resolve(f"refs/kernelteam/strays/{stray[:12]}") == stray
    assert campaign.mended() == ()


def test_a_commit_on_top_of_the_verified_one_is_as_stray(campaign: Campaign) -> None:
    campaign.move_main(campaign.commit("// by hand\n", campaign.candidate))
    assert len(campaign.mended()) == 1
    assert campaign.hub.main == campaign.baseline


@pytest.mark.parametrize("harm", ["deleted", "garbage", "no such object"])
def test_a_main_that_is_gone_stands_again(campaign: Campaign, harm: str) -> None:
    ref = campaign.hub.path / "refs" / "heads" / "main"
    if harm == "deleted":
        ref.unlink()
    else:
        ref.write_text("rubbish\n" if harm == "garbage" else f"{'1' * 40}\n")
    (said,) = campaign.mended()
    assert "gone or unreadable" in said
    assert campaign.hub.main == campaign.baseline


def test_a_stale_lock_of_main_is_removed(campaign: Campaign) -> None:
    lock = campaign.hub.path / "refs" / "heads" / "main.lock"
    lock.touch()
    os.utime(lock, (1.0, 1.0))
    assert [str(lock) in said for said in campaign.mended()] == [True]
    assert not lock.exists()


def _objects_of(campaign: Campaign, commit: str) -> list[Path]:
    names = git(campaign.hub.path, "rev-list", "--objects", commit, "--not", campaign.baseline).splitlines()
    return [campaign.hub.path / "objects" / name[:2] / name[2:40] for name in names]


def _land(campaign: Campaign) -> None:
    campaign.move_main(campaign.candidate)
    with Ledger(campaign.run.ledger, writer=True) as ledger:
        landed = ev.Landed(experiment="x1", commit=campaign.candidate, before=campaign.baseline, gain=GAIN)
        ledger.append(1000.0, [("", landed)])


def test_a_missing_object_of_main_is_refused_with_the_remedy(campaign: Campaign) -> None:
    _land(campaign)
    examine(campaign.run)
    for path in _objects_of(campaign, campaign.candidate):
        saved = path.read_bytes()
        path.unlink()
        with pytest.raises(UserError, match=rf"lacks objects of commit {campaign.candidate[:12]}.*from a copy"):
            examine(campaign.run)
        path.write_bytes(saved)


def test_missing_objects_of_the_baseline_come_from_the_users_repository(campaign: Campaign) -> None:
    git(campaign.hub.path, "repack", "-adq")
    git(campaign.hub.path, "update-ref", "-d", f"refs/kernelteam/experiments/{campaign.candidate[:16]}")
    shutil.rmtree(campaign.hub.path / "objects")
    (campaign.hub.path / "objects").mkdir()
    examine(campaign.run)
    assert campaign.hub.lacking((campaign.baseline,)) == ()


def test_a_disk_without_room_is_told_before_anything_starts(campaign: Campaign, monkeypatch) -> None:
    free = shutil.disk_usage(campaign.run.folder).free
    room(campaign.run.folder)
    monkeypatch.setattr(recovery, "MIN_FREE_BYTES", free * 2)
    with pytest.raises(UserError, match=r"only \d+ MiB left.*resume"):
        examine(campaign.run)


NOBODY = """
import os, sys
from pathlib import Path
from team.errors import UserError
from team.launch import _held
from team.recovery import examine
from team.runs import Run
os.setgid(65534)
os.setuid(65534)
try:
    examine(Run(Path(sys.argv[1])))
except UserError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become somebody to whom the folder is read-only")
def test_a_folder_that_cannot_be_written_is_told() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        campaign = Campaign(Path(name))
        Path(name).chmod(0o755)
        said = subprocess.run(
            [sys.executable, "-c", NOBODY, str(campaign.run.folder)], capture_output=True, text=True, timeout=60
        )
        assert f"{campaign.run.folder} cannot be written. Make it writable" in said.stdout, said.stderr


def _truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


@contextmanager
def _torn(campaign: Campaign, part: str) -> Iterator[Callable[[int], Path]]:
    """Copies of the run folder whose ledger (or its write-ahead log) ends after so many bytes."""
    keeper = Ledger(campaign.run.ledger, writer=True)  # as a killed writer leaves it: the log is not folded in
    keeper.append(1001.0, [("", ev.StopRequested(why="more"))])
    if part == "ledger.sqlite":
        keeper.close()

    def cut(size: int) -> Path:
        folder = campaign.run.folder.with_name(f"torn-{size}")
        folder.mkdir()
        for path in campaign.run.folder.glob("ledger.sqlite*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, folder / path.name)
        _truncate(folder / part, size)
        return folder / "ledger.sqlite"

    yield cut
    keeper.close()


@pytest.mark.parametrize("part", ["ledger.sqlite", "ledger.sqlite-wal"])
def test_a_torn_ledger_is_a_prefix_or_one_sentence(campaign: Campaign, part: str) -> None:
    with _torn(campaign, part) as cut:
        with Ledger(campaign.run.ledger) as ledger:
            whole = list(ledger.events())
        length = (campaign.run.folder / part).stat().st_size
        dice = random.Random(1)
        told: list[tuple[Path, str]] = []
        for size in sorted({0, 1, 100, length - 1, *(dice.randrange(length) for _ in range(40))}):
            path = cut(size)
            try:
                with Ledger(path, writer=True) as ledger:
                    found = list(ledger.events())
                    assert found == whole[: len(found)]
                    ledger.append(1002.0, [("", ev.StopRequested(why="goes on"))])
                    assert [event.seq for event in ledger.events()] == list(range(1, len(found) + 2))
            except LedgerError as error:
                told.append((path, str(error)))
    assert all(str(path) in said for path, said in told)
    assert told or part == "ledger.sqlite-wal"


def test_a_gap_in_the_ledger_is_told(campaign: Campaign) -> None:
    with sqlite3.connect(campaign.run.ledger) as db:
        db.execute("DELETE FROM events WHERE seq = 3")
    with pytest.raises(UserError, match=r"torn: event 3 is missing.*from a copy"):
        examine(campaign.run)


def test_a_ledger_that_lost_its_tail_does_not_leave_main_unverified(campaign: Campaign) -> None:
    """The landing's events are gone with the tail, so its commit is a stray: nothing verified stands on main."""
    _land(campaign)
    with sqlite3.connect(campaign.run.ledger) as db:
        db.execute("DELETE FROM events WHERE seq > 5")
    (said,) = campaign.mended()
    assert "no verification" in said
    assert campaign.hub.main == campaign.baseline


def test_what_is_asked_while_a_campaign_is_resumed_is_not_lost(campaign: Campaign) -> None:
    """A stop for the old driver is void, one that comes while the new one starts Ray is carried out."""
    inbox = campaign.run.inbox
    for kind in ("stop", "pause", "wrap-up"):
        inbox.leave(Request(kind=kind, why="for the old one"))
    with _held(campaign.run, resume=True):
        assert [request.kind for _, request in inbox.waiting()] == ["wrap-up"]
        inbox.leave(Request(kind="stop", why="for the new one"))
        coordinator = Coordinator(str(campaign.run.folder))
        asyncio.run(_resumed(coordinator))
    assert list(inbox.waiting()) == []
    assert (campaign.state().wrap_up, campaign.state().stop) == ("for the old one", "for the new one")


async def _resumed(coordinator: Coordinator) -> None:
    await coordinator.resume()
    await coordinator._take_requests()


def test_the_command_line_says_it_in_one_sentence(campaign: Campaign, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "runs").mkdir(parents=True)
    campaign.run.folder.rename(home / "runs" / "c")
    _truncate(home / "runs" / "c" / "ledger.sqlite", 5000)
    environment = {**os.environ, "KERNELTEAM_HOME": str(home)}
    for command in ("status", "resume"):
        words = [sys.executable, "-m", "team.cli", command]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "ledger" in done.stderr
        assert "from a copy" in done.stderr
        assert "Traceback" not in done.stderr
