"""The agent actor: one device, one worktree, one mind, one judge, and a loop that can be read aloud.

Ask for a duty, perform it, report it. An agent that is killed is started again by Ray under a new incarnation; what it
had in flight is marked lost by the coordinator and handed out anew.
"""

import logging
import os
import threading
import uuid
from pathlib import Path
from typing import Any

import ray
from pydantic import TypeAdapter

from protocol.events import AnyBody, ExperimentReported, Member, MergeResolved, NothingProposed
from protocol.messages import (
    Briefing,
    Chronicle,
    Duty,
    Experiment,
    Measurement,
    ModelCall,
    Noise,
    Outcome,
    PastExperiment,
    Plan,
    Rest,
    Stop,
)
from protocol.policy import Policy
from protocol.wire import decode
from roles.minds.registry import make_mind
from team.desk import Desk
from team.devices import open_device
from team.duties import PERFORM
from team.judge.client import Judge
from team.judge.failures import JudgeDied
from team.judge.request import Check
from team.recovery import room
from team.runs import Run, log_to
from team.supply import Carried, Shared, Supply, receive_run
from team.workshop import AgentWorkshop
from team.workspace.hub import Hub

log = logging.getLogger(__name__)
_DUTY: TypeAdapter[Duty] = TypeAdapter(Duty)
_JUDGE_TRIES = 3
ACTOR_OPTIONS = {"max_restarts": -1, "max_task_retries": 0, "num_cpus": 1}


class Line:
    """The agent's line to the coordinator: plain dicts over Ray, types on this side."""

    def __init__(self, coordinator: Any, member: Member, device: str) -> None:
        self._coordinator = coordinator
        self._member = member
        self._device = device
        self.incarnation = uuid.uuid4().hex
        self._history: list[PastExperiment] = []
        self._verdicts = 0

    def join(self, device: dict[str, Any]) -> None:
        """Say that this process lives."""
        ray.get(self._coordinator.join.remote(self._member.name, self.incarnation, device, os.getpid()))

    def next_duty(self) -> Duty:
        """The next duty; the request carries an id, so that Ray may repeat it."""
        ask = uuid.uuid4().hex
        raw = ray.get(self._coordinator.next_duty.remote(self._member.name, self.incarnation, ask))
        return _DUTY.validate_python(raw)

    def briefing(self, base: str) -> Briefing:
        """What the mind is told. The history comes in parts: this line keeps what it was told before."""
        told: Any = ray.get(self._coordinator.briefing.remote(self._member.name, base, self._verdicts))
        briefing, history, self._verdicts = told
        self._history += [PastExperiment.model_validate(decode(past)) for past in history]
        return Briefing.model_validate(briefing).model_copy(update={"history": tuple(self._history)})

    def chronicle(self) -> Chronicle:
        """The record of the whole team."""
        return Chronicle.model_validate(ray.get(self._coordinator.chronicle.remote()))

    def admit(self, experiment: str, plan: Plan, commits: list[str], dollars: float) -> str:
        """Empty when the plan may run."""
        said = self._coordinator.admit.remote(
            self._member.name, experiment, plan.model_dump(mode="json"), commits, dollars
        )
        return ray.get(said)

    def spent(self, call: ModelCall) -> None:
        """Say what an answer of a model cost; durable when this returns."""
        ray.get(self._coordinator.spent.remote(self._member.name, call.model_dump(mode="json")))

    def refuse(self, experiment: str, plan: Plan, why: str, dollars: float) -> None:
        """Say that a plan's edit may not be committed."""
        raw = plan.model_dump(mode="json")
        ray.get(self._coordinator.refuse.remote(self._member.name, experiment, raw, why, dollars))

    def noise(self) -> Noise | None:
        """The calibrated noise of this agent's device."""
        facts: Any = ray.get(self._coordinator.facts.remote(self._device))
        noise = facts["noise"]
        return Noise.model_validate(noise) if noise else None

    def report(self, body: AnyBody, bundle: bytes) -> str:
        """Report a duty; durable when this returns. The verdict, when it was an experiment."""
        raw = body.model_dump(mode="json")
        return ray.get(self._coordinator.report.remote(self._member.name, raw, bundle))


class Agent:
    """One member of the team."""

    def __init__(self, coordinator: Any, member: dict[str, Any], folder: str, options: dict[str, Any]) -> None:
        self._member = Member.model_validate(member)
        self._coordinator = coordinator
        self._options = options
        self._run, self._hub, self._supply = self._settle_in(Path(folder))
        log_to(self._run.log(self._member.name))
        self._device = open_device(self._member.device)
        self._device.confine()
        self._line = Line(coordinator, self._member, self._device.id)
        self._rest = threading.Event()

    def _settle_in(self, folder: Path) -> tuple[Run, Hub, Supply]:
        """The run folder, hub and supply of this node: the campaign's own, or ones that bundles feed."""
        node = ray.get_runtime_context().get_node_id()
        if node == self._options["home"]:
            return Run(folder), Hub.open(folder), Shared()

        def ask(commit: str, known: list[str]) -> bytes:
            return ray.get(self._coordinator.bundle.remote(commit, known))

        started = self._options["baseline"]
        run, hub = receive_run(folder.name, node, self._options["task_path"], started, ask(started, []))
        return run, hub, Carried(hub, ask)

    def ready(self) -> None:
        """Answers when this process lives."""

    def run(self) -> str:
        """Work until the coordinator says stop; why it did."""
        self._line.join(self._device.info().model_dump(mode="json"))
        desk = self._desk()
        try:
            while True:
                duty = self._line.next_duty()
                if isinstance(duty, Stop):
                    return duty.why
                if isinstance(duty, Rest):
                    self._rest.wait(duty.seconds)
                    continue
                self._perform(desk, duty)
        finally:
            desk.judge.close()

    def _perform(self, desk: Desk, duty: Duty) -> None:
        log.info("duty: %s", duty)
        room(self._run.folder)
        why = ""
        for _ in range(_JUDGE_TRIES):
            try:
                self._report(desk, PERFORM[type(duty)](desk, duty))
                return
            except JudgeDied as died:
                why = str(died)
                self._replace_judge(desk, why)
        if not isinstance(duty, Experiment):
            raise RuntimeError(f"{_JUDGE_TRIES} judges in a row died: {why}")
        self._report(desk, NothingProposed(experiment=duty.id, why=f"{_JUDGE_TRIES} judges died on it: {why}"[:500]))

    def _report(self, desk: Desk, body: AnyBody) -> None:
        made = [body.commit] if isinstance(body, ExperimentReported | MergeResolved) and body.commit else []
        verdict = self._line.report(body, desk.supply.offer(made, self._options["baseline"]))
        log.info("reported: %s", verdict or "taken in")

    def _desk(self) -> Desk:
        editable, scratch = tuple(self._options["editable"]), self._run.scratch(self._member.name)
        name = self._member.name
        kept, count = self._run.transcripts(name), self._line.spent
        place = scratch / "workshop"
        cache = scratch / "cache"
        workshop = AgentWorkshop(self._hub, place, kept, lambda tree: self._look(desk, tree), count, editable, cache)
        desk = Desk(
            name=self._member.name,
            device=self._device,
            mind=make_mind(self._member.mind, self._member.options, workshop),
            hub=self._hub,
            supply=self._supply,
            worktree=self._hub.worktree(self._member.name),
            judge=self._judge(),
            trusted=self._run.trusted,
            snapshots=scratch / "snapshots",
            editable=editable,
            weights=self._options["weights"],
            policy=Policy.model_validate(self._options["policy"]),
            lead=self._line,
        )
        return desk

    def _look(self, desk: Desk, tree: Path) -> Measurement:
        """The judge's quick look at a tree, by a fresh judge when the first one dies of it."""
        request = Check(task=str(self._run.trusted), tree=str(tree))
        try:
            return desk.judge.check(request)
        except JudgeDied as died:
            self._replace_judge(desk, str(died))
            return Measurement(outcome=Outcome.CRASHED, detail=f"the judge died of it: {died}")

    def _replace_judge(self, desk: Desk, why: str) -> None:
        log.warning("%s; starting another judge", why)
        desk.judge.close()
        desk.judge = self._judge()

    def _judge(self) -> Judge:
        law = Policy.model_validate(self._options["policy"])
        judge = Judge(self._device, self._run.scratch(self._member.name), law)
        judge.start()
        return judge
