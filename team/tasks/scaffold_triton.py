"""``kernelteam init`` of a Triton file: its ``setup`` says which tensors ``run_kernel`` takes, the dims are given."""

import ast
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from team.errors import UserError
from team.tasks.drafting import derived, quoted, reference_text, task_name, tolerance_lines, workload_lines
from team.tasks.task import Task, load_task
from team.tasks.triton import ENTRY, SETUP

SMALL = 64  # the largest dim of the shape for Triton's interpreter
_UNREAD = "def reference(**named):\n    pass\n"


def triton_files(
    kernel_file: Path,
    target: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, Sequence[str]],
    scalars: Mapping[str, float],
) -> dict[str, str]:
    """Texts of ``task.toml`` and of a reference to complete. ``setup`` is run once for each shape that is written.

    Shapes derived from the given one are left out where ``setup`` refuses them.
    """
    source = kernel_file.read_text(errors="replace")
    _refuse_missing(kernel_file, source, dims, scalars)
    if shapes:
        raise UserError(f"{SETUP} in {kernel_file.name} says its tensors' shapes.", "Leave out --shape.")
    first = dict(dims)
    given = _read(kernel_file, source, _toml(kernel_file, target, [first], [], scalars, []))
    dtypes = [str(one.dtype).removeprefix("torch.") for one in given.outputs]

    def taken(one: dict[str, int]) -> bool:
        try:
            _read(kernel_file, source, _toml(kernel_file, target, [one], [], scalars, dtypes))
        except UserError:
            return False
        return True

    more = [one for one in derived(first, list(first))[1:] if taken(one)]
    small = [one for one in [{name: _small(size) for name, size in first.items()}] if first and taken(one)]
    tensors = [buffer.name for buffer in given.buffers]
    numbers = [*given.numbers(given.workloads[0])]
    sizes = {one.name: [str(extent) for extent in given.shape(one, given.workloads[0])] for one in given.buffers}
    inputs, outputs = ([one.name for one in found] for found in (given.inputs, given.outputs))
    return {
        "task.toml": _toml(kernel_file, target, [first, *more], small, scalars, dtypes),
        "reference.py": reference_text(
            task_name(target), [*tensors, *numbers], [*first, *scalars], inputs, outputs, sizes
        ),
    }


def _small(size: int) -> int:
    """Halved until it is small, so that what divides it often still does."""
    while size > SMALL:
        size //= 2
    return size


def _refuse_missing(kernel_file: Path, source: str, dims: Mapping[str, int], scalars: Mapping[str, float]) -> None:
    """Whatever the text alone shows to be wrong."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{kernel_file} is not Python: {error}.", "Correct it.") from None
    functions = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    if ENTRY not in functions:
        known = f"{kernel_file}:{next(iter(functions), 'FUNCTION')}"
        raise UserError(
            f"{kernel_file.name} is neither a Triton kernel with {ENTRY} nor a problem with Model and get_inputs.",
            f"Define {ENTRY}(**inputs) there, or name a PyTorch function: kernelteam init {known}",
        )
    if SETUP not in functions:
        raise UserError(
            f"Nothing says which tensors {ENTRY} in {kernel_file.name} takes.",
            f'Define {SETUP}(**dims, seed) there; it returns {{"inputs": {{name: tensor}}, "outputs": [names]}}.',
        )
    taken = functions[SETUP]
    names = [one.arg for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs) if one.arg != "seed"]
    strange = [name for name in (*dims, *scalars) if name not in names and not taken.kwarg]
    if strange:
        told = ", ".join(names) or "none"
        raise UserError(f"{SETUP} in {kernel_file.name} takes no '{strange[0]}'.", f"It takes: {told}.")
    positional = [one.arg for one in (*taken.posonlyargs, *taken.args)]
    optional = set(positional[len(positional) - len(taken.defaults) :])
    optional |= {one.arg for one, default in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if default}
    if missing := [name for name in names if name not in (*dims, *scalars) and name not in optional]:
        wanted = " ".join(f"--dim {name}=SIZE" for name in missing)
        raise UserError(f"{SETUP} in {kernel_file.name} does not say: {', '.join(missing)}.", f"Add: {wanted}")


def _toml(
    kernel_file: Path,
    target: Path,
    shapes: Sequence[Mapping[str, int]],
    small: Sequence[Mapping[str, int]],
    scalars: Mapping[str, float],
    outputs: Sequence[str],
) -> str:
    sizes = list(shapes[0])
    parts = [
        f"name = {quoted(task_name(target))}",
        'contract = "triton"',
        'device = "cuda"',
        f"source = {quoted(kernel_file.name)}",
        'reference = "reference.py"',
        "",
        *tolerance_lines(outputs),
        "",
        *workload_lines(shapes, sizes, scalars),
    ]
    if small:
        parts += [
            "# For Triton's interpreter, where there is no GPU.",
            *workload_lines(small, sizes, scalars, "interpreted"),
        ]
    return "\n".join(parts)


def _read(kernel_file: Path, source: str, toml: str) -> Task:
    """The task as it would be, from a folder that goes away; a ``UserError`` when ``setup`` fails."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-init-") as name:
        folder = Path(name)
        for file, text in (("task.toml", toml), ("reference.py", _UNREAD), (kernel_file.name, source)):
            (folder / file).write_text(text)
        return load_task(folder)
