"""The judge by hand on two trees: ``kernelteam ab A B``, with the measurement and the law of a campaign.

Fresh processes, fresh inputs, its own calibration. Nothing is written but a scratch folder that goes away.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from protocol.held_out import held_to
from protocol.messages import Decision, Estimate, Measurement, Noise, Outcome, Verdict
from protocol.sequential import decide
from protocol.simplicity import is_simpler
from protocol.verdict import judge
from team.devices import discover
from team.errors import UserError
from team.judge.client import Judge
from team.judge.request import Calibrate, Compare
from team.runs import find_run
from team.scope import refuse_without_gpu
from team.tasks.spec import TaskSpec, read_spec
from team.workspace.command import Git
from team.workspace.hub import Hub
from team.workspace.objects import Objects
from team.workspace.origin import inspect


@dataclass(frozen=True)
class Comparison:
    """What ``ab`` found."""

    verdict: Verdict
    reason: str
    decision: Decision | None
    measurement: Measurement
    noise: Noise
    device: str

    def as_json(self) -> dict[str, Any]:
        """Everything, raw pairs included, as plain values."""
        return {
            "verdict": self.verdict.value,
            "reason": self.reason,
            "device": self.device,
            "speedup": _ratio(self.decision.overall) if self.decision else None,
            "workloads": {n: _ratio(e) for n, e in self.decision.workloads.items()} if self.decision else {},
            "noise": self.noise.model_dump(mode="json"),
            "measurement": self.measurement.model_dump(mode="json"),
        }

    def render(self) -> RenderableType:
        """For a terminal."""
        head = f"{self.verdict.value} on {self.device}: {self.reason}"
        if self.decision is None:
            return head
        table = Table("workload", "speedup of B over A", "interval", box=None)
        for name, estimate in {**self.decision.workloads, "all, weighted": self.decision.overall}.items():
            table.add_row(name, f"{exp(estimate.gain):.4f}x", f"[{exp(estimate.low):.4f}, {exp(estimate.high):.4f}]")
        overall = self.decision.overall
        foot = f"{overall.pairs} pairs in {overall.restarts} restarts; noise floor {self.noise.floor:.2%}"
        return Group(head, table, foot)


def _ratio(estimate: Estimate) -> dict[str, float]:
    return {"speedup": exp(estimate.gain), "low": exp(estimate.low), "high": exp(estimate.high)}


def compare_commits(a: str, b: str, task: Path, run: Path | None) -> Comparison:
    """B against A by the law. In a campaign, 'base' and 'result' are its baseline and its main."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-ab-") as scratch:
        trusted, base, candidate = _trees(a, b, task, run, Path(scratch))
        spec = read_spec(trusted)
        refuse_without_gpu(spec)
        with _judge(spec) as (judge_process, device):
            noise, _ = _calibrated(judge_process, trusted, base)
            request = Compare(task=str(trusted), base=str(base), candidate=str(candidate), noise=noise, held_out=True)
            measured = judge_process.compare(request)
    return _decided(spec, measured, noise, device)


def _decided(spec: TaskSpec, measured: Measurement, noise: Noise, device: str) -> Comparison:
    weights = {w.name: w.weight for w in spec.must_pass}
    decision = None
    if measured.outcome is Outcome.MEASURED:
        decision = held_to(decide(measured.restarts, weights, noise, spec.policy), measured, noise, spec.policy)
    verdict, reason = judge(measured, decision, is_simpler(measured.simplicity, spec.policy), spec.policy)
    return Comparison(verdict, reason, decision, measured, noise, device)


def _calibrated(judge_process: Judge, trusted: Path, base: Path) -> tuple[Noise, Measurement]:
    noise, measured, _ = judge_process.calibrate(Calibrate(task=str(trusted), base=str(base)))
    return noise, measured


@contextmanager
def _judge(spec: TaskSpec, kind: str | None = None) -> Iterator[tuple[Judge, str]]:
    device = discover(kind or spec.device, 1)[0]
    with tempfile.TemporaryDirectory(prefix="kernelteam-judge-") as scratch, Judge(device, Path(scratch)) as found:
        yield found, device.id


def _trees(a: str, b: str, task: Path, run: Path | None, scratch: Path) -> tuple[Path, Path, Path]:
    """(trusted task folder, A, B) as plain folders."""
    if run is not None or {a, b} & {"base", "result"}:
        found = find_run(run)
        hub = Hub.open(found.folder)
        names = {"base": hub.baseline, "result": hub.main}
        first, second = (hub.export(names.get(name, name), scratch) for name in (a, b))
        return found.trusted, first, second
    if Path(a).is_dir() and Path(b).is_dir():
        return Path(a).resolve(), Path(a).resolve(), Path(b).resolve()
    origin = inspect(task, ("task.toml",))
    objects = Objects(Git(origin.root), origin.task)
    base, candidate = (objects.export(_commit(origin.root, name), scratch) for name in (a, b))
    return base, base, candidate


def tree_of(name: str, task: Path, run: Path | None, scratch: Path) -> tuple[Path, Path]:
    """(trusted task folder, the tree that ``name`` means) as plain folders; see ``compare_commits``."""
    trusted, tree, _ = _trees(name, name, task, run, scratch)
    return trusted, tree


def _commit(root: Path, name: str) -> str:
    found = Git(root).attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise UserError(f"'{name}' is neither a folder nor a commit of {root}.", "See the commits with: git log")
    return found.stdout.decode().strip()
