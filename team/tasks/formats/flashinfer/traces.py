"""What the judge measured as traces of a data set: one line for each workload, with what we know and nothing more."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

from protocol.messages import Measurement, Outcome
from team.tasks.formats.flashinfer.packing import safe
from team.tasks.formats.flashinfer.schema import (
    Correctness,
    Definition,
    Environment,
    Evaluation,
    Performance,
    Solution,
    Status,
    Trace,
    Workload,
)

_STATUS: dict[Outcome, Status] = {
    Outcome.INCORRECT: "INCORRECT_NUMERICAL",
    Outcome.TAMPERED: "RUNTIME_ERROR",
    Outcome.CRASHED: "RUNTIME_ERROR",
    Outcome.BUILD_FAILED: "COMPILE_ERROR",
    Outcome.TIMEOUT: "TIMEOUT",
}


def traces(
    solution: Solution,
    workloads: Sequence[Workload],
    seen: Measurement,
    when: datetime,
    reference_ms: Mapping[str, float],
) -> list[Trace]:
    """One trace for each workload that the measurement says something of.

    The judge records errors as shares of the tolerance, not as distances: those fields are NaN, and the share is beside
    them. Without a reference's time that and the ratio are 0, as where the benchmark does not time it either.
    """
    environment = Environment(hardware=_hardware(seen), libs=_libs(seen))
    found: list[Trace] = []
    for workload in workloads:
        if seen.outcome is Outcome.MEASURED:
            evaluation = _passed(seen, workload.uuid, environment, when, reference_ms.get(workload.uuid, 0.0))
        elif seen.workload in ("", workload.uuid):
            evaluation = _failed(seen, environment, when)
        else:
            continue
        if evaluation is not None:
            found.append(
                Trace(definition=solution.definition, workload=workload, solution=solution.name, evaluation=evaluation)
            )
    return found


def append_traces(found: Sequence[Trace], definition: Definition, author: str, root: Path) -> Path:
    """Append to the author's traces of a definition; the file."""
    path = root / "traces" / safe(author) / definition.op_type / f"{definition.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        for one in found:
            handle.write(json.dumps(_plain(one.model_dump(mode="python"))) + "\n")
    return path


def _passed(
    seen: Measurement, name: str, environment: Environment, when: datetime, reference_ms: float
) -> Evaluation | None:
    times = [pair.candidate_ns for restart in seen.restarts for pair in restart.pairs.get(name, ())]
    if not times:
        return None
    ours = median(times) / 1e6
    performance = Performance(
        latency_ms=ours, reference_latency_ms=reference_ms, speedup_factor=reference_ms / ours if reference_ms else 0.0
    )
    worst = next((check.worst for check in seen.checks if check.workload == name), math.nan)
    return Evaluation(
        status="PASSED",
        environment=environment,
        timestamp=when.isoformat(timespec="seconds"),
        correctness=_correctness(worst),
        performance=performance,
    )


def _failed(seen: Measurement, environment: Environment, when: datetime) -> Evaluation:
    status = _STATUS[seen.outcome]
    return Evaluation(
        status=status,
        environment=environment,
        timestamp=when.isoformat(timespec="seconds"),
        log=seen.detail,
        correctness=_correctness(math.inf) if status == "INCORRECT_NUMERICAL" else None,
    )


def _correctness(worst: float) -> Correctness:
    return Correctness(max_relative_error=math.nan, max_absolute_error=math.nan, extra={"share_of_tolerance": worst})


def _hardware(seen: Measurement) -> str:
    return seen.device.name if seen.device else "unknown"


def _libs(seen: Measurement) -> dict[str, str]:
    build = seen.candidate_build
    return {"compiler": build.compiler} if build else {}


def _plain(value: object) -> object:
    """JSON has no NaN and no infinity: they are written as the names that the package reads."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value
