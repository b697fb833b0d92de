"""What a run works with: folder, state, repository, judge, mind; and the few things that every step asks of them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from protocol.messages import Measurement, ModelCall, Variant
from protocol.policy import Policy
from roles.minds.mind import Mind
from roles.minds.registry import make_mind
from team.devices.device import Device
from team.judge.client import Judge
from team.judge.failures import JudgeDied
from team.judge.request import Check, Compare, Identity
from team.optimize.artifacts import Folder
from team.optimize.options import Options
from team.optimize.records import Subject
from team.optimize.state import State, Store
from team.tasks.spec import TaskSpec, read_spec
from team.workshop import AgentWorkshop
from team.workspace.hub import Hub

log = logging.getLogger(__name__)
AGENT = "optimizer"
T = TypeVar("T")
_JUDGE_TRIES = 2


@dataclass
class Session:
    """One process's hold on a run."""

    folder: Folder
    store: Store
    hub: Hub
    trusted: Path
    spec: TaskSpec
    device: Device
    judge: Judge
    mind: Mind
    policy: Policy
    say: Callable[[str], None]

    @property
    def state(self) -> State:
        """The run's state; ``store.save`` makes changes durable."""
        return self.store.state

    @property
    def options(self) -> Options:
        """What was asked."""
        return self.state.options

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each workload."""
        return {one.name: one.weight for one in self.spec.workloads}

    @property
    def full(self) -> str:
        """The workload that is the user's own shape."""
        return self.spec.workloads[-1].name

    @property
    def best(self) -> str:
        """The commit that stands."""
        champion = self.state.global_champion
        return champion.commit if champion else self.state.baseline_commit

    def snapshot(self, commit: str) -> Path:
        """The task folder at a commit, as plain files."""
        return self.hub.export(commit, self.folder.scratch / "snapshots")

    def source_of(self, commit: str) -> str:
        """The kernel's text at a commit."""
        return self.hub.read([self.spec.source], commit)[self.spec.source]

    def compare(self, base: str, candidate: str) -> Measurement:
        """Judge one commit against another, in fresh processes on fresh inputs."""
        request = Compare(
            task=str(self.trusted),
            base=str(self.snapshot(base)),
            candidate=str(self.snapshot(candidate)),
            noise=self.state.noise,
        )
        return self.ask(lambda: self.judge.compare(request))

    def identical(self, base: str, candidate: str) -> Measurement:
        """Whether a commit's outputs have another's bits, over as many draws as there are validation seeds."""
        request = Identity(
            task=str(self.trusted),
            base=str(self.snapshot(base)),
            candidate=str(self.snapshot(candidate)),
            draws=len(self.options.validation_seeds),
        )
        return self.ask(lambda: self.judge.identical(request))

    def ask(self, question: Callable[[], T]) -> T:
        """Ask the judge; one that died is replaced and asked again once."""
        for left in range(_JUDGE_TRIES - 1, -1, -1):
            try:
                return question()
            except JudgeDied as died:
                log.warning("the judge died: %s", died)
                if not left:
                    raise
                self.judge.close()
                self.judge.start()
        raise AssertionError("unreachable")

    def commit(self, base: str, variant: Variant, experiment: str, technique: str, change: str) -> str:
        """Commit a variant before it runs, and keep it; ``Refused`` when it touches what is not editable."""
        from team.race import commit_variant

        return commit_variant(self.hub, self.spec.editable_files, base, variant, experiment, technique, AGENT, change)

    def subject(self, file: str) -> Subject:
        """What a ``bench.json`` is of."""
        total = self.state.workload_matrix[-1]["bytes"] if self.state.workload_matrix else None
        return Subject(self.options, self.spec, self.state.signature, file, total)


@contextmanager
def opened(
    folder: Folder, store: Store, policy: Policy, device: Device, say: Callable[[str], None]
) -> Iterator[Session]:
    """A session on a run whose task folder is there: hub (made once), judge and mind; taken down at the end."""
    hub_there = (folder.path / "hub.git").is_dir()
    hub = Hub.open(folder.path) if hub_there else Hub.create(folder.path, folder.task)
    trusted = hub.export(hub.baseline, folder.scratch / "snapshots")
    spec = read_spec(trusted)
    log_path = folder.path / "transcripts"
    with Judge(device, folder.scratch, policy) as judge:

        def look(tree: Path) -> Measurement:
            return judge.check(Check(task=str(trusted), tree=str(tree)))

        def count(call: ModelCall) -> None:
            name = f"{call.duty}:{call.number}"
            if name not in store.state.calls:
                store.state.calls[name] = call.dollars
                store.state.dollars += call.dollars
                store.save()

        place, cache = folder.scratch / "mind", folder.scratch / "cache"
        workshop = AgentWorkshop(hub, place, log_path, look, count, spec.editable_files, cache)
        mind = make_mind(store.state.options.mind, store.state.options.mind_options, workshop)
        yield Session(folder, store, hub, trusted, spec, device, judge, mind, policy, say)
