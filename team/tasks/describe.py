"""The operator block of a task. Runs the task's own ``workload_model``, so this belongs to the judge's process."""

from protocol.problem import Operand, Problem
from team.tasks.task import Buffer, Task


def describe(task: Task) -> Problem:
    """What the task computes, as its signature, task.toml and reference module say."""
    spec, workloads = task.spec, task.workloads
    dims = {name for workload in workloads for name in workload.dims}
    sizes = {name: [workload.dims[name] for workload in workloads if name in workload.dims] for name in dims}
    return Problem(
        operator=spec.operator or spec.name,
        entry=f"{spec.source}({', '.join(parameter.name for parameter in task.signature.parameters)})",
        numerics=spec.numerics,
        operands=tuple(_operand(task, buffer) for buffer in task.buffers),
        dispatch={name: (min(values), max(values)) for name, values in sizes.items()},
        floors={workload.name: task.floor(workload) for workload in workloads},
    )


def _operand(task: Task, buffer: Buffer) -> Operand:
    tolerance = task.spec.tolerance_of(buffer.name)
    return Operand(
        name=buffer.name,
        role=buffer.role,
        dtype=buffer.parameter.dtype,
        shape=tuple(str(extent) for extent in buffer.extents),
        tolerance=(tolerance.atol, tolerance.rtol) if buffer.is_written else None,
    )
