"""Whether two kernels give the same bits: what strict numerics ask of a change. Trusted; the runners are not.

Both sides get the same private inputs, fresh ones for every draw. A base that does not repeat itself, because it adds
atomically for one, has no bits to keep; that is said instead of blaming the candidate.
"""

import torch

from protocol.messages import Outcome
from team.judge.arena import Layout
from team.judge.artifact import Artifact
from team.judge.bench import Bench
from team.judge.check import Deadlines, Record
from team.judge.failures import Failed, Side
from team.judge.inputs import InputSource
from team.tasks.task import Task, Tensors

_WORDS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}


class Twins:
    """Launches two kernels on equal inputs. ``record`` is the base's check, which knows its speed."""

    def __init__(self, bench: Bench, task: Task, source: InputSource, record: Record) -> None:
        self._bench = bench
        self._task = task
        self._source = source
        self._deadlines = Deadlines(task.spec.policy, record)

    def refuse_difference(self, base: Artifact, candidate: Artifact, draws: int) -> None:
        """Raise ``Failed`` for the first output in which the candidate differs from the base."""
        layouts = [self._bench.arrange(self._task, one, draws, self._source.dice) for one in self._task.workloads]
        self._bench.provide(max(layout.end for layout in layouts))
        for layout in layouts:
            inputs = self._source.timed(layout.workload, draws)
            first = self._outputs("base", base, layout, inputs)
            self._compare(layout, first, self._outputs("base", base, layout, inputs), "does not repeat its own bits")
            self._compare(layout, first, self._outputs("candidate", candidate, layout, inputs), "")

    def _outputs(self, side: Side, kernel: Artifact, layout: Layout, inputs: Tensors) -> Tensors:
        with self._bench.stand(side, self._task, kernel, 0) as stand:
            stand.workload = layout.workload.name
            lease = stand.stage(1, layout, layout.launches)
            lease.fill(inputs)
            lease.poison(self._source.generator)
            stand.go(1, self._deadlines.of(layout.workload, layout.launches))
            return {name: value.clone() for name, value in lease.outputs(layout.launches).items()}

    def _compare(self, layout: Layout, ours: Tensors, theirs: Tensors, of_base: str) -> None:
        for name, one in ours.items():
            words = _WORDS[one.dtype.itemsize]
            differ = one.contiguous().view(words) != theirs[name].contiguous().view(words)
            if not bool(differ.any()):
                continue
            at = int(differ.flatten().nonzero()[0])
            seen, other = one.flatten()[at].item(), theirs[name].flatten()[at].item()
            what = f"{int(differ.sum())} of {differ.numel()} elements of '{name}', first [{at}]: {seen!r}, {other!r}"
            said = (
                f"the base {of_base}, so strict numerics cannot be held: {what}"
                if of_base
                else f"in bits it differs in {what}"
            )
            raise Failed("candidate", Outcome.INCORRECT, said, layout.workload.name)
