"""A second opinion by the package ``flashinfer-bench``, where it is installed: its runner, in a process of its own.

Only a confirmation, never a reward: that runner shares its process with the candidate. It needs a GPU of its own for
the time being; results come back as traces of a scratch data set.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from team.errors import UserError
from team.tasks.formats.flashinfer.packing import place_in_dataset
from team.tasks.formats.flashinfer.schema import Definition, Solution, Trace, Workload

PACKAGE = "flashinfer_bench"
TIMEOUT_S = 300  # seconds for one workload, as the package's own default
_UNUSABLE = "dsa_topk_indexer"  # the released package compares this definition's index sets element by element


def confirm(
    definition: Definition, workloads: Sequence[Workload], solution: Solution, blobs: Path | None, device: str = "0"
) -> list[Trace]:
    """What the package's runner says of a solution on GPU ``device``; ``UserError`` where it cannot be asked."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise UserError(
            "The package flashinfer-bench is not installed.",
            "Install it: pip install --no-deps flashinfer-bench safetensors docstring-parser",
        )
    if (
        definition.name.startswith(_UNUSABLE)
        and importlib.util.find_spec(f"{PACKAGE}.bench.evaluators.{_UNUSABLE}") is None
    ):
        raise UserError(
            f"This flashinfer-bench has no evaluator for {definition.name}: it rejects other orders of a right set.",
            "Install it from its repository.",
        )
    with tempfile.TemporaryDirectory(prefix="kernelteam-official-") as folder:
        root = Path(folder) / "data"
        scratch_dataset(definition, workloads, solution, blobs, root)
        done = subprocess.run(
            command(definition, solution, root),
            env={**os.environ, "CUDA_VISIBLE_DEVICES": device, "FIB_CACHE_PATH": str(Path(folder) / "cache")},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S * (len(workloads) + 1),
            check=False,
        )
        found = read_traces(root)
    if not found:
        raise UserError(
            f"flashinfer-bench left no trace: {(done.stderr or done.stdout)[-500:].strip()}", "See its log."
        )
    return found


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
