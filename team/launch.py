"""Start a campaign, look after it, and end it: the driver's side. Ray is started here and nowhere else.

The driver holds the campaign (``driver.lock``), watches the agents' loops and tells the coordinator of dead ones. When
the driver dies, Ray and everything under it dies with it; the ledger is the campaign, and ``resume`` goes on from it.
"""

import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from protocol.events import CampaignStarted, Member
from protocol.hardware import Hardware
from protocol.ledger import Ledger
from protocol.messages import Advice
from protocol.policy import Policy
from protocol.problem import Problem
from protocol.snapshot import restore
from protocol.state import CampaignState
from protocol.steering import outlives
from roles.techniques.catalog import pool
from roles.techniques.strategy import strategy_for
from team.errors import UserError
from team.guardian import RAY_FOLDER
from team.loops import Loops, sentence
from team.recovery import diagnose, examine
from team.runs import Run
from team.tasks.spec import HELD_OUT, TaskSpec
from team.workspace.hub import Hub

log = logging.getLogger(__name__)
_WRITE_UP_SECONDS = 30.0
_LAST_WORD_SECONDS = 5.0
_MOST_COORDINATORS = 10
_COORDINATORS_WITHIN_SECONDS = 300.0
# The agent pins itself to the GPU that it was given by UUID; Ray would show it another one by index.
_OWN_CHOICE = {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}
_STORE_BYTES = 100 * 1024 * 1024


class CoordinatorLost(Exception):
    """Ray starts coordinators and none of them lives: something outside of them is wrong, as a rule the disk."""

    def __init__(self, starts: int) -> None:
        super().__init__(f"the coordinator died {starts} times within {_COORDINATORS_WITHIN_SECONDS / 60:.0f} minutes")


@dataclass(frozen=True)
class Scope:
    """What the user confirmed."""

    run: Run
    task_folder: Path
    spec: TaskSpec
    policy: Policy
    members: tuple[Member, ...]
    seed: int
    hardware: Hardware
    problem: Problem
    advice: tuple[Advice, ...]
    advice_note: str
    submit: bool = False
    tooling: tuple[str, ...] = ()


def prepare(scope: Scope) -> None:
    """Make the run folder: hub, trusted copy of the task, ledger with its first event. All of it or nothing."""
    try:
        hub = Hub.create(scope.run.folder, scope.task_folder, needed_of(scope.spec))
        hub.entrust(hub.main, scope.run.trusted)
        with Ledger(scope.run.ledger, writer=True) as ledger:
            ledger.append(time.time(), [("", _first_event(scope, hub))])
    except BaseException:
        shutil.rmtree(scope.run.folder, ignore_errors=True)
        raise


def needed_of(spec: TaskSpec) -> tuple[str, ...]:
    """The task's own files, which must be committed."""
    own = ("task.toml", spec.source, spec.reference, *spec.editable_files, *([HELD_OUT] if spec.held_out else []))
    return tuple(dict.fromkeys(own))


def _first_event(scope: Scope, hub: Hub) -> CampaignStarted:
    spec = scope.spec
    total = sum(w.weight for w in spec.must_pass)
    return CampaignStarted(
        campaign=scope.run.name,
        task=spec.name,
        operator=spec.operator or spec.name,
        language=language_of(spec),
        numerics=spec.numerics,
        task_path=hub.task,
        repository=str(hub.origin),
        commit=hub.main,
        workloads={w.name: w.dims for w in spec.must_pass},
        weights={w.name: w.weight / total for w in spec.must_pass},
        editable=spec.editable_files,
        policy=scope.policy,
        members=scope.members,
        seed=scope.seed,
        hardware=scope.hardware,
        problem=scope.problem,
        known_broken=spec.broken,
        tooling=scope.tooling,
        advice=scope.advice,
        advice_note=scope.advice_note,
        submit=scope.submit,
        categories=pool(language_of(spec)),
        strategy=strategy_for(language_of(spec), spec.numerics),
    )


def language_of(spec: TaskSpec) -> Literal["cpp", "cuda", "triton"]:
    """The language of a task's kernel."""
    if spec.contract == "triton":
        return "triton"
    return "cpp" if spec.device == "cpu" else "cuda"


def state_of(run: Run) -> CampaignState:
    """The state of a campaign, from its ledger."""
    with Ledger(run.ledger) as ledger:
        return restore(ledger)[0]


@contextmanager
def ray_session(run: Run, members: int, address: str | None) -> Iterator[Any]:
    """A Ray runtime for one campaign: joined when ``address`` is given, else started here and ended with this block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    os.environ.setdefault("RAY_worker_niceness", "0")  # else a judge and what it times yield to every other process
    import ray

    common: dict[str, Any] = {"namespace": run.name, "log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        ray.init(address=address, **common)
        try:
            yield ray
        finally:
            ray.shutdown()
        return
    folder = _ray_folder(run)
    try:
        ray.init(
            address="local",
            num_cpus=max(members, os.cpu_count() or 1),
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            _temp_dir=str(folder),
            **common,
        )
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
        (run.folder / "ray-folder").unlink(missing_ok=True)


def _ray_folder(run: Run) -> Path:
    """A short path for Ray's sockets; the one of a campaign that was killed is removed first."""
    note = run.folder / "ray-folder"
    if note.is_file():
        shutil.rmtree(note.read_text(), ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{RAY_FOLDER}{os.getpid()}-", dir="/tmp"))
    note.write_text(str(folder))
    return folder


class Campaign:
    """A campaign that runs under this driver."""

    def __init__(self, ray: Any, run: Run, resume: bool) -> None:
        self._ray = ray
        self._run = run
        self._state = state_of(run)
        self._coordinator = self._start_coordinator()
        self._agents = {m.name: self._start_agent(m) for m in self._state.started.members}  # they import meanwhile
        if resume:
            ray.get(self._coordinator.resume.remote())
        self._pid = ray.get(self._coordinator.ready.remote())
        self._starts: list[float] = []
        self._heard = self._coordinator.ready.remote()
        self._loops = Loops(ray, self._agents, self._lost)
        self.failed = ""

    def _start_coordinator(self) -> Any:
        from team.coordinator import ACTOR_OPTIONS, NAME, Coordinator

        options = {**ACTOR_OPTIONS, "name": NAME, "lifetime": "detached", "scheduling_strategy": self._here()}
        return self._ray.remote(**options)(Coordinator).remote(str(self._run.folder))

    def _here(self) -> Any:
        """Scheduling on this node: where the ledger is, and where the core sets were counted."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node_id=self._ray.get_runtime_context().get_node_id(), soft=False)

    def _start_agent(self, member: Member) -> Any:
        from team.agent import ACTOR_OPTIONS, Agent

        wants: dict[str, Any] = dict(ACTOR_OPTIONS)
        if member.device.startswith("cpu:"):
            wants["scheduling_strategy"] = self._here()
        if member.device.startswith("GPU-"):
            wants["num_gpus"] = 1
            wants["runtime_env"] = {"env_vars": _OWN_CHOICE}
        started = self._state.started
        options = {
            "editable": list(started.editable),
            "weights": started.weights,
            "policy": started.policy.model_dump(mode="json"),
            "home": self._ray.get_runtime_context().get_node_id(),
            "baseline": started.commit,
            "task_path": started.task_path,
        }
        return self._ray.remote(**wants)(Agent).remote(
            self._coordinator, member.model_dump(mode="json"), str(self._run.folder), options
        )

    def tend(self, over: threading.Event, timeout: float = 0.5) -> None:
        """Look after the agents until all of them have stopped. ``over`` is set at the end."""
        try:
            while self._loops:
                self._loops.settle(timeout)
                self._listen()
            if self._loops.abandoned:
                stop = f"no agent could be kept alive; the last one said: {self._loops.abandoned}"
                self._told(self._coordinator.request_stop.remote(stop))
        except self._ray.exceptions.RayError as error:
            log.exception("the campaign cannot go on")
            self.failed = sentence(error)
        except CoordinatorLost as lost:
            self.failed = str(lost)
        finally:
            over.set()

    def _listen(self) -> None:
        """Notice each coordinator that Ray has started anew; ``CoordinatorLost`` when none lives for long."""
        answered, _ = self._ray.wait([self._heard], timeout=0)
        if not answered:
            return
        pid = self._ray.get(self._heard)
        if pid != self._pid:
            now = time.monotonic()
            self._pid = pid
            self._starts = [at for at in self._starts if now - at < _COORDINATORS_WITHIN_SECONDS] + [now]
        if len(self._starts) > _MOST_COORDINATORS:
            raise CoordinatorLost(len(self._starts))
        self._heard = self._coordinator.ready.remote()

    def _told(self, call: Any) -> None:
        """Wait for a call that Ray repeats until a coordinator lives to answer it."""
        while not self._ray.wait([call], timeout=0.5)[0]:
            self._listen()
        self._ray.get(call)

    def _lost(self, name: str, why: str) -> None:
        self._told(self._coordinator.lost.remote(name, why))

    def end(self) -> None:
        """End the actors; the ledger is closed by the end of its owner."""
        self._ray.wait([self._heard], timeout=_LAST_WORD_SECONDS)  # else Ray tells the user of a call that it repeats
        for agent in self._agents.values():
            self._ray.kill(agent)
        with suppress(self._ray.exceptions.RayError):  # notes are rendered again when the campaign is resumed
            self._ray.get(self._coordinator.write_up.remote(), timeout=_WRITE_UP_SECONDS)
        self._ray.kill(self._coordinator)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """What Ray and its C++ side say about dead workers goes to a file, not between the user's lines."""
    sys.stderr.flush()
    before = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def _held(run: Run, resume: bool) -> Iterator[None]:
    """Hold the campaign. To resume is a newer word than a request to stop or pause that was left for an older driver;
    what is asked from now on, also while Ray is starting, is meant for this one."""
    with run.owned():
        if resume:
            run.inbox.void(outlives)
        yield


def conduct(run: Run, address: str | None, resume: bool, watch: Callable[[threading.Event], None]) -> CampaignState:
    """Run a prepared campaign to its end. ``watch`` shows it to the user until its event is set."""
    examine(run)
    members = len(state_of(run).started.members)
    with _held(run, resume), _stderr_to(run.log("driver")), ray_session(run, members, address) as ray:
        campaign = Campaign(ray, run, resume)
        over = threading.Event()
        tending = threading.Thread(target=campaign.tend, args=(over,), name="tend", daemon=True)
        tending.start()
        try:
            watch(over)
            tending.join()
        finally:
            campaign.end()
    if campaign.failed:
        raise diagnose(run, campaign.failed)
    state = state_of(run)
    if state.baseline_refused:
        raise UserError(f"The baseline was refused: {state.baseline_refused}.", "Mend the task and start again.")
    return state
