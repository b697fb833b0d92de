"""A finished campaign on a task folder, written by hand: a repository, its hub, the trusted copy, one landing."""

import subprocess
from pathlib import Path

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.messages import Role
from protocol.policy import Policy
from team.runs import Run
from team.tasks.spec import read_spec
from team.workspace.hub import Hub


def git(folder: Path, *arguments: str) -> None:
    """Run git there, as somebody."""
    command = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def campaign_on(task: Path, runs: Path) -> Run:
    """The folder of a campaign on the task in ``task``, in which nothing has landed yet."""
    git(task, "init", "-q", "-b", "trunk")
    git(task, "add", ".")
    git(task, "commit", "-q", "-m", "a task")
    run, spec = Run(runs / "c"), read_spec(task)
    hub = Hub.create(run.folder, task)
    hub.export(hub.main, run.folder / "at").rename(run.trusted)
    member = ev.Member(name="explorer-1", role=Role.EXPLORER, mind="noop", device="cpu:0")
    started = ev.CampaignStarted(
        campaign="c", task=spec.name, operator="x", language="cpp", numerics="reference", task_path=".",
        repository=str(task), commit=hub.main, workloads={"w": {}}, weights={"w": 1.0}, editable=spec.editable_files,
        policy=Policy(), members=(member,), seed=0,
    )  # fmt: skip
    with Ledger(run.ledger, writer=True) as ledger:
        ledger.append(1000.0, [("", started)])
    return run


def land(run: Run, old: str, new: str) -> None:
    """Main moves to a commit in which the kernel says ``new`` for ``old``."""
    hub, spec = Hub.open(run.folder), read_spec(run.trusted)
    text = hub.read([spec.source], hub.main)[spec.source]
    assert old in text
    files = {spec.source: text.replace(old, new)}
    commit = hub.commit(hub.main, files, "a change", {}, spec.editable_files)
    hub.git.run("update-ref", "refs/heads/main", commit)
