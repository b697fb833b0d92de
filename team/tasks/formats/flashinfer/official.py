"""A second opinion by the package ``flashinfer-bench``, where it is installed: its runner, in a process of its own.

Only a confirmation, never a reward: that runner shares its process with the candidate. It needs a GPU of its own for
the time being; results come back as traces of a scratch data set.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.flashinfer.packing import place_in_dataset
from team.tasks.formats.flashinfer.schema import Definition, Solution, Trace, Workload

PACKAGE = "flashinfer_bench"
INSTALL = "pip install --no-deps --target DIR flashinfer-bench==0.1.2 apache-tvm-ffi safetensors docstring-parser ninja"
TIMEOUT_S = 300  # seconds for one workload, as the package's own default
_UNUSABLE = "dsa_topk_indexer"  # the released package compares this definition's index sets element by element
_NO_GPU = "No CUDA devices available"  # what its runner says
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "LANG", "LC_ALL", "TMPDIR")


def confirm(
    definition: Definition,
    workloads: Sequence[Workload],
    solution: Solution,
    blobs: Path | None,
    device: str = "0",
    package: Path | None = None,
) -> list[Trace]:
    """What the package's runner says of a solution on GPU ``device``; ``UserError`` where it cannot be asked.

    ``package`` is a folder that it was installed into; by default it is among the packages of this environment.
    """
    place = _place(package)
    evaluators = place / "bench" / "evaluators"
    if definition.name.startswith(_UNUSABLE) and not (evaluators / f"{_UNUSABLE}.py").is_file():
        raise UserError(
            f"This flashinfer-bench has no evaluator for {definition.name}: it rejects other orders of a right set.",
            "Install it from its repository.",
        )
    with tempfile.TemporaryDirectory(prefix="kernelteam-official-") as folder:
        root = Path(folder) / "data"
        scratch_dataset(definition, workloads, solution, blobs, root)
        said = _run(command(definition, solution, root), Path(folder), device, package, len(workloads) + 1)
        found = read_traces(root)
    if not found and _NO_GPU in said:
        raise UserError(f"flashinfer-bench found no GPU '{device}' here.", "Ask it on a machine with one, or: --gpu N")
    if not found:
        raise UserError(f"flashinfer-bench left no trace: {said[-500:]}", "See its log.")
    return found


def _place(package: Path | None) -> Path:
    """Where the package's own files lie; it is not imported here."""
    if package is not None:
        if not (package / PACKAGE).is_dir():
            raise UserError(f"There is no flashinfer-bench in {package}.", f"Install it: {INSTALL}")
        return package / PACKAGE
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UserError("The package flashinfer-bench is not installed.", f"Install it: {INSTALL}; then: --package DIR")
    return Path(spec.submodule_search_locations[0])


def _run(asked: list[str], folder: Path, device: str, package: Path | None, evaluations: int) -> str:
    """Run the package's command line, and what it said. It runs candidate code: of our environment it gets what
    programs need."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"HOME": str(folder), "CUDA_VISIBLE_DEVICES": device, "FIB_CACHE_PATH": str(folder / "cache")}
    if package is not None:
        for name, first in (("PYTHONPATH", package.resolve()), ("PATH", package.resolve() / "bin")):
            environment[name] = os.pathsep.join([str(first), *filter(None, [environment.get(name)])])
    limit, seen = TIMEOUT_S * evaluations, subprocess.PIPE
    with subprocess.Popen(
        asked, env=environment, stdin=subprocess.DEVNULL, stdout=seen, stderr=seen, text=True, process_group=0
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise UserError(f"flashinfer-bench did not end within {limit} s.", "Confirm fewer workloads.") from None
        finally:
            if process.returncode is None:  # too late, or interrupted
                os.killpg(process.pid, signal.SIGKILL)  # the candidate runs in a child of it
    return errors.strip() or output.strip()


def command(definition: Definition, solution: Solution, root: Path) -> list[str]:
    """What is run: one solution, since its runner mixes results up when it has several."""
    return [
        *(sys.executable, "-c", f"from {PACKAGE}.cli.main import cli; cli()", "run", "--local", str(root)),
        *("--definitions", definition.name, "--solutions", solution.name, "--timeout", str(TIMEOUT_S)),
        *("--use-isolated-runner", "--save-results"),
    ]


def scratch_dataset(
    definition: Definition, workloads: Sequence[Workload], solution: Solution, blobs: Path | None, root: Path
) -> None:
    """A data set of one definition, its workloads and one solution; recorded tensors by a link."""
    places = root / "definitions" / definition.op_type, root / "workloads" / definition.op_type
    for place in places:
        place.mkdir(parents=True)
    (places[0] / f"{definition.name}.json").write_text(definition.model_dump_json())
    lines = [Trace(definition=definition.name, workload=one).model_dump_json() for one in workloads]
    (places[1] / f"{definition.name}.jsonl").write_text("\n".join(lines) + "\n")
    place_in_dataset(solution, definition, root)
    if blobs is not None and (blobs / "blob").is_dir():
        (root / "blob").symlink_to(blobs / "blob")


def read_traces(root: Path) -> list[Trace]:
    """The traces that a run left."""
    files = sorted((root / "traces").rglob("*.jsonl")) if (root / "traces").is_dir() else []
    lines = [line for path in files for line in path.read_text().splitlines() if line.strip()]
    return [Trace.model_validate(json.loads(line)) for line in lines]
