"""Ablation of a campaign's result: main is measured without each of its landings, and looked for in the machine code.

Every landing's answer is in the ledger when it is there, so an ablation that was broken off, or whose time was up, goes
on where it stopped. The strategy memory learns from what is proven.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import exp
from pathlib import Path

from protocol import events as ev
from protocol.ablations import labels, method_lists, pending_ablations
from protocol.ledger import Ledger
from protocol.messages import Noise
from protocol.methods import MethodLists, SassCheck, Status
from protocol.snapshot import restore
from protocol.state import CampaignState, apply
from team.errors import UserError
from team.evaluation import device_of
from team.evidence.ablation import Ablated, Trial, Without, ablate
from team.evidence.artifacts import artifact_of
from team.evidence.removal import Change, Writer, removed
from team.evidence.sass import signature_of, verify
from team.judge.client import Judge
from team.judge.request import Calibrate
from team.launch import state_of
from team.memory import remember
from team.runs import Run
from team.workspace.hub import Hub

Say = Callable[[str], None]


def ablate_run(run: Run, minutes: float, say: Say = print, writer: Writer | None = None) -> str:
    """Take out each landing that main was not measured without yet; the five lists, to be printed.

    ``writer`` is asked where later changes stand in the way. ``UserError`` when there is nothing to take out.
    """
    state = state_of(run)
    if not state.landed:
        raise UserError("Nothing landed on main, so there is nothing to take out.", "See: kernelteam log")
    hub = Hub.open(run.folder)
    with run.owned(), Ledger(run.ledger, writer=True) as ledger:
        state = restore(ledger)[0]
        if left := pending_ablations(state):
            with _opened(run, hub, state) as room:
                room.ablate(left, 60.0 * minutes, lambda body: _record(ledger, state, body, say), writer)
            if trouble := remember(state):
                say(trouble)
    return _told(method_lists(state))


def _record(ledger: Ledger, state: CampaignState, body: ev.MethodAblated, say: Say) -> None:
    for event in ledger.append(time.time(), [("", body)]):
        apply(state, event)
    gain = body.ablation.gain
    by = f", {exp(gain.gain):.3f}x [{exp(gain.low):.3f}, {exp(gain.high):.3f}]" if gain else ""
    said = f"{labels(state)[body.experiment]}: {body.ablation.contribution.value.replace('_', ' ')}{by}"
    say(f"{said}; machine code: {body.sass.status.value.replace('_', ' ')}")


def _told(lists: MethodLists) -> str:
    rows = lists.model_dump()
    return "\n".join(f"{name.replace('_', ' '):22}{', '.join(rows[name]) or '-'}" for name in rows)


class _Room:
    """Trees of a campaign, and one judge."""

    def __init__(self, run: Run, hub: Hub, state: CampaignState, judge: Judge, device: str, scratch: Path) -> None:
        self._hub, self._state, self._scratch, self._device = hub, state, scratch, device
        self._judge, self._trusted = judge, run.trusted
        self._champion = hub.export(state.main, scratch / "trees")

    def ablate(
        self,
        experiments: tuple[str, ...],
        seconds: float,
        record: Callable[[ev.MethodAblated], None],
        writer: Writer | None,
    ) -> None:
        """Each experiment's landing in turn, within ``seconds`` for all of them."""
        started = self._state.started
        trial = Trial(self._judge, self._trusted, self._champion, started.weights, self._noise(), self._state.policy)
        trees = [self._without(ident, writer) for ident in experiments]
        for ident, tree, found in zip(experiments, trees, ablate(trial, trees, seconds), strict=True):
            if found.begun:
                record(self._body(ident, tree, found))

    def _noise(self) -> Noise:
        known = self._state.noise.get(self._device)
        if known is not None:
            return known
        base = self._hub.export(self._state.started.commit, self._scratch / "trees")
        return self._judge.calibrate(Calibrate(task=str(self._trusted), base=str(base)))[0]

    def _without(self, ident: str, writer: Writer | None) -> Without:
        experiment = self._state.experiments[ident]
        landed = next(one for one in self._state.landed if one.experiment == ident)
        plan = experiment.plan
        assert plan is not None
        editable = self._state.started.editable
        before, after, champion = (
            self._hub.read(editable, commit) for commit in (landed.before, landed.commit, self._state.main)
        )
        found = removed(Change(ident, plan, before, after, champion, experiment.parameters), writer)
        if not found.files:
            return Without(plan.technique, None, found.how)
        trailers = {"Without": ident, "Technique": plan.technique}
        commit = self._hub.commit(self._state.main, found.files, f"Without: {plan.change}", trailers, editable)
        self._hub.anchor(f"ablations/{ident}/{commit[:16]}", commit)
        return Without(plan.technique, self._hub.export(commit, self._scratch / "trees"), found.how, commit)

    def _body(self, ident: str, tree: Without, found: Ablated) -> ev.MethodAblated:
        return ev.MethodAblated(
            experiment=ident,
            commit=self._state.main,
            device=self._device if found.measurement else "",
            ablation=found.ablation,
            sass=self._sass(tree.method, found),
            measurement=found.measurement,
        )

    def _sass(self, method: str, found: Ablated) -> SassCheck:
        """The champion's machine code against that of the tree without the method."""
        if self._state.started.language == "cpp":
            return SassCheck(method=method, status=Status.NOT_APPLICABLE, why="there is no machine code of a GPU")
        cache = self._scratch / "judge" / "cache"
        paths = [artifact_of(cache, build.artifact) for build in found.builds or ()]
        champion, without = paths or (None, None)
        if champion is None or without is None:
            if signature_of(method) is not None:
                return SassCheck(method=method, status=Status.INCONCLUSIVE, why="there are no two builds to compare")
            champion = Path()
        return verify([method], champion, without)[0]


@contextmanager
def _opened(run: Run, hub: Hub, state: CampaignState) -> Iterator[_Room]:
    device = device_of(run, state)
    with tempfile.TemporaryDirectory(prefix="kernelteam-ablate-") as name:
        scratch = Path(name)
        with Judge(device, scratch / "judge", state.policy) as judge:
            yield _Room(run, hub, state, judge, device.id, scratch)
