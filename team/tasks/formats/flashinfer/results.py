"""Results of imported definitions: a campaign's as traces of a data set, and what the package says of them."""

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from protocol import events as ev
from protocol.ledger import Ledger
from team.bench import tree_of
from team.errors import UserError
from team.runs import find_run
from team.tasks.formats.flashinfer.dataset import read_definition, workloads_of
from team.tasks.formats.flashinfer.official import confirm
from team.tasks.formats.flashinfer.packing import AUTHOR, is_imported, pack, place_in_dataset
from team.tasks.formats.flashinfer.schema import Definition, ScalarInput, Solution, Trace, Workload
from team.tasks.formats.flashinfer.served import DEFINITION
from team.tasks.formats.flashinfer.traces import append_traces, traces
from team.tasks.spec import TaskSpec, read_spec
from team.tasks.spec import Workload as Shape
from team.workspace.hub import Hub


def trace_campaign(campaign: Path, data: Path) -> tuple[Sequence[Trace], Path]:
    """The last direct measurement of a campaign's main, added to the data set with its solution; and the file."""
    run = find_run(campaign)
    main = Hub.open(run.folder).main
    with Ledger(run.ledger) as ledger:  # with its samples, which reports do without
        bodies = [(event.time, event.body) for event in ledger.events()]
    measured = [(time, body) for time, body in bodies if isinstance(body, ev.MainMeasured) and body.commit == main]
    if not measured:
        raise UserError("This campaign's result has not been measured directly yet.", "Let it end: kernelteam resume")
    definition, solution, workloads = _result(run.folder, data)
    when, last = measured[-1]
    found = traces(solution, workloads, last.measurement, datetime.fromtimestamp(when, UTC), {})
    place_in_dataset(solution, definition, data)
    return found, append_traces(found, definition, AUTHOR, data)


def confirm_result(place: Path, data: Path | None, gpu: str, package: Path | None = None) -> list[Trace]:
    """What flashinfer-bench says of the result of a campaign or a task folder."""
    definition, solution, workloads = _result(place, data)
    return confirm(definition, workloads, solution, data, gpu, package)


def _result(place: Path, data: Path | None) -> tuple[Definition, Solution, list[Workload]]:
    """The definition, the result as a solution, and the task's workloads as the data set has them."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-result-") as scratch:
        if (place / "task.toml").is_file():
            trusted, tree = place, place
        else:
            trusted, tree = tree_of("result", Path("."), place, Path(scratch))
        if not is_imported(trusted):
            raise UserError(
                f"{place} is no FlashInfer-Trace definition's.", "Make a task of one: kernelteam init FILE.json"
            )
        definition = read_definition(trusted / DEFINITION)
        return definition, pack(trusted, tree), workloads_as_recorded(definition, read_spec(trusted), data)


def workloads_as_recorded(definition: Definition, spec: TaskSpec, data: Path | None) -> list[Workload]:
    """The task's workloads: those of the data set under their names, others by their axes and numbers."""
    recorded = {one.uuid: one for one in workloads_of(definition, data)}
    return [recorded.get(one.name) or _described(definition, one) for one in spec.must_pass]


def _described(definition: Definition, shape: Shape) -> Workload:
    numbers = {**shape.dims, **shape.scalars}
    return Workload(
        uuid=shape.name,
        axes={axis: shape.dims[axis] for axis in definition.variables},
        inputs={
            name: ScalarInput(type="scalar", value=numbers[name]) for name in definition.scalars if name in numbers
        },
    )
