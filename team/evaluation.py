"""The full evaluation of a final commit: a clean clone, fresh processes and inputs, every workload, several times."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.held_out import held_to
from protocol.messages import Decision, Measurement, Noise, Outcome, Verdict
from protocol.sequential import decide
from protocol.state import CampaignState
from protocol.verdict import judge
from team.devices import discover, open_device
from team.devices.device import Device
from team.errors import UserError
from team.judge.client import Judge
from team.judge.failures import BaselineBroken, JudgeDied
from team.judge.request import Calibrate, Compare
from team.runs import Run
from team.tasks.spec import read_spec
from team.workspace.command import Git, GitFailed
from team.workspace.hub import Hub

UNFIT = (Verdict.TAMPERED, Verdict.BUILD_FAILED, Verdict.INCORRECT, Verdict.CRASHED, Verdict.TIMEOUT)


class Unfit(Exception):
    """The final commit failed its evaluation: one sentence, and the workload when there is one."""

    def __init__(self, why: str, workload: str) -> None:
        super().__init__(why)
        self.why = why
        self.workload = workload


class CleanRoom:
    """The final commit in a clean clone, the baseline beside it, and a judge of its own."""

    def __init__(self, run: Run, state: CampaignState, judge_process: Judge, device: str, folders: tuple[Path, Path]):
        self._trusted = run.trusted
        self._state = state
        self._judge = judge_process
        self._base, self.tree = folders
        self.device = device

    def noise(self) -> Noise:
        """What is known of the device, else calibrated now."""
        known = self._state.noise.get(self.device)
        if known is not None:
            return known
        return self._judge.calibrate(Calibrate(task=str(self._trusted), base=str(self._base)))[0]

    def evaluate(self, noise: Noise) -> tuple[Measurement, Decision]:
        """One full evaluation; ``Unfit`` when a workload is incorrect, or it loses on shapes that are not listed."""
        task, base, candidate = str(self._trusted), str(self._base), str(self.tree)
        request = Compare(task=task, base=base, candidate=candidate, noise=noise, held_out=True)
        try:
            measured = self._judge.compare(request)
        except (JudgeDied, BaselineBroken) as died:
            raise UserError(f"The evaluation broke off: {died}", "Repeat it with: kernelteam submit") from None
        started = self._state.started
        decision = None
        if measured.outcome is Outcome.MEASURED:
            listed = decide(measured.restarts, started.weights, noise, started.policy)
            decision = held_to(listed, measured, noise, started.policy)
            if decision.state != listed.state:
                raise Unfit(decision.reason, "")
        verdict, why = judge(measured, decision, False, started.policy)
        if decision is None or verdict in UNFIT:
            where = f" on workload '{measured.workload}'" if measured.workload else ""
            raise Unfit(f"{verdict.value.lower()}{where}: {why}", measured.workload)
        return measured, decision


@contextmanager
def clean_room(run: Run, hub: Hub, state: CampaignState) -> Iterator[CleanRoom]:
    """Clone the campaign's repository at its final commit into a folder that goes away."""
    device = device_of(run, state)
    with tempfile.TemporaryDirectory(prefix="kernelteam-submit-") as name:
        scratch = Path(name)
        clone = _clone(hub, state.main, scratch / "clone")
        base = hub.export(state.started.commit, scratch / "base")
        with Judge(device, scratch / "judge", state.policy) as judge_process:
            yield CleanRoom(run, state, judge_process, device.id, (base, clone / hub.task))


def _clone(hub: Hub, commit: str, folder: Path) -> Path:
    """What a person gets who clones the result: nothing of a worktree, cache or build is in it."""
    folder.mkdir(parents=True)
    git = Git(folder)
    try:
        git.run(
            "clone", "--quiet", "--no-local", "--no-checkout", "--config", "core.autocrlf=false", str(hub.path), "."
        )
        git.run("checkout", "--quiet", "--detach", commit)
    except GitFailed as failed:
        raise UserError(
            f"The campaign's repository cannot be cloned: {failed.stderr.strip()}.",
            f"See what is wrong with: git -C {hub.path} fsck",
        ) from None
    return folder


def device_of(run: Run, state: CampaignState) -> Device:
    """A device that the campaign measured on, so that its noise is known; else the first of its kind that is idle."""
    known = [main.device for main in reversed(state.main_measured)] + list(state.baselines)
    for name in dict.fromkeys(known):
        try:
            return open_device(name)
        except UserError:
            continue  # it belongs to another machine, or may not be used now
    return discover(read_spec(run.trusted).device, 1)[0]
