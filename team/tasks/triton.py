"""Tasks of the contract ``triton``: a Python file with ``run_kernel``, described by task.toml or by its own ``setup``.

Trusted: ``setup`` is read from the task folder's own copy of the source, which the user committed, and never from a
candidate. Two descriptions, all or nothing: ``[arguments]`` gives every tensor its shape, dtype and role, and the judge
draws the inputs; or there are none, and ``setup(**dims, seed) -> {"inputs": {name: value}, "outputs": [names]}`` tells
the tensors, the numbers that go with them, and makes the inputs.
"""

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from team.errors import UserError
from team.tasks.signature import Parameter, Signature
from team.tasks.spec import Argument, TaskSpec, Workload
from team.tasks.task import Buffer, Task

ENTRY = "run_kernel"
SETUP = "setup"
_PLAIN = (int, float, bool, str, type(None))


@dataclass(frozen=True)
class Description:
    """One workload by ``setup``: the tensors, numbers and names beside them, and which tensors are outputs."""

    tensors: dict[str, torch.Tensor]
    values: dict[str, Any]
    outputs: tuple[str, ...]


class SetupTask(Task):
    """A task whose shapes, numbers and inputs are what ``setup`` says."""

    def __init__(
        self,
        folder: Path,
        spec: TaskSpec,
        signature: Signature,
        module: ModuleType,
        described: dict[str, Description],
        describe: Callable[[Workload], Description],
    ) -> None:
        self._described = described
        self._describe = describe
        super().__init__(folder, spec, signature, module)

    @property
    def varying(self) -> set[str]:
        """Any dim may be part of an extent: only ``setup`` knows."""
        return set(self.spec.workloads[0].dims)

    def shape(self, buffer: Buffer, workload: Workload) -> tuple[int, ...]:
        """Extents of one buffer on one workload."""
        return tuple(self._of(workload).tensors[buffer.name].shape)

    def numbers(self, workload: Workload) -> dict[str, Any]:
        """Dims, scalars, and what ``setup`` adds to them."""
        return {**super().numbers(workload), **self._of(workload).values}

    def _of(self, workload: Workload) -> Description:
        """What ``setup`` says of a workload, asked once."""
        if workload.name not in self._described:
            self._described[workload.name] = self._describe(workload)
        return self._described[workload.name]


def triton_task(folder: Path, spec: TaskSpec, source: str, module: ModuleType) -> Task:
    """The task in ``folder``; whatever is wrong with it is a ``UserError``."""
    if spec.device != "cuda":
        raise UserError(f"Task {spec.name} is written in Triton, which is for GPUs.", 'Say device = "cuda" there.')
    _refuse_without_entry(spec, source)
    if spec.arguments:
        return Task(folder, spec, _signature(spec, spec.arguments), module)
    if callable(getattr(module, "make_inputs", None)):
        raise UserError(
            f"The reference of task {spec.name} has a make_inputs, but task.toml describes no arguments.",
            f"Describe them there, or let {SETUP} in {spec.source} make the inputs.",
        )
    setup = _setup_of(folder / spec.source, source)

    def describe(workload: Workload) -> Description:
        return _described(spec, setup, workload, 0)

    described = {workload.name: describe(workload) for workload in spec.workloads}
    spec = spec.model_copy(update={"arguments": _arguments(spec, described)})

    def make_inputs(seed: int, **dims: Any) -> dict[str, torch.Tensor]:
        return _called(spec, setup, dims, seed).tensors

    module.__dict__["make_inputs"] = make_inputs
    return SetupTask(folder, spec, _signature(spec, spec.arguments), module, described, describe)


def without_setup(source: str) -> str:
    """The text with ``setup`` blanked out, line for line: a candidate's copy of it is neither read nor run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    lines = source.splitlines(keepends=True)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == SETUP:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for number in range(first - 1, node.end_lineno or first):
                lines[number] = "\n"
    return "".join(lines)


def _refuse_without_entry(spec: TaskSpec, source: str) -> None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{spec.source} of task {spec.name} is not Python: {error}.", "Correct it.") from None
    if not any(isinstance(node, ast.FunctionDef) and node.name == ENTRY for node in tree.body):
        raise UserError(
            f"{spec.source} of task {spec.name} defines no function {ENTRY}.",
            f"Define {ENTRY}(**inputs), which writes the outputs in place or returns them.",
        )


def _signature(spec: TaskSpec, arguments: dict[str, Argument]) -> Signature:
    """Tensors as pointers in the order of task.toml, then dims, then scalars."""
    first = spec.workloads[0]
    pointers = [
        Parameter(name, _dtype(spec, name, one), pointer=True, const=(one.role or "input") == "input")
        for name, one in arguments.items()
    ]
    dims = [Parameter(name, "int64", pointer=False, const=False) for name in first.dims]
    scalars = [Parameter(name, "float64", pointer=False, const=False) for name in first.scalars]
    return Signature((*pointers, *dims, *scalars))


def _dtype(spec: TaskSpec, name: str, argument: Argument) -> str:
    if not isinstance(getattr(torch, argument.dtype, None), torch.dtype):
        raise UserError(f"'{name}' of task {spec.name} has the unknown dtype '{argument.dtype}'.", "Name one of torch.")
    return argument.dtype


def _setup_of(path: Path, source: str) -> Callable[..., Any]:
    """``setup`` of the task's own source, executed from its text."""
    module = ModuleType("kernelteam_setup")
    module.__file__ = str(path)
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except ModuleNotFoundError as error:
        raise UserError(f"{path} needs the module {error.name}.", _install(str(error.name))) from None
    except Exception as error:  # human-owned code may raise anything while it loads
        raise UserError(f"{path} does not load: {type(error).__name__}: {error}.", "Correct it.") from error
    setup = getattr(module, SETUP, None)
    if not callable(setup):
        raise UserError(
            f"Nothing says which tensors {ENTRY} in {path} takes.",
            f"Describe them under [arguments] in task.toml, or define {SETUP}(**dims, seed) there.",
        )
    return setup


def _install(name: str) -> str:
    return "Install it: pip install 'kernelteam[triton]'" if name == "triton" else f"Install it: pip install {name}"


def _described(spec: TaskSpec, setup: Callable[..., Any], workload: Workload, seed: int) -> Description:
    return _called(spec, setup, {**workload.dims, **workload.scalars}, seed)


def _called(spec: TaskSpec, setup: Callable[..., Any], dims: dict[str, Any], seed: int) -> Description:
    """What ``setup`` says for these dims and this seed, held to its form."""
    wants = inspect.signature(setup).parameters
    given = {**dims, "seed": seed}
    if not any(one.kind is one.VAR_KEYWORD for one in wants.values()):
        given = {name: value for name, value in given.items() if name in wants}
    try:
        with torch.no_grad():
            made = setup(**given)
        inputs, outputs = dict(made["inputs"]), tuple(made["outputs"])
    except Exception as error:  # human-owned code may raise anything
        raise UserError(
            f"{SETUP} in {spec.source} of task {spec.name} failed with {type(error).__name__}: {error}.",
            'It takes the dims by name and the seed, and returns {"inputs": {...}, "outputs": [...]}.',
        ) from error
    tensors = {name: value.detach() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    values = {name: value for name, value in inputs.items() if name not in tensors}
    for name in outputs:
        if name not in tensors:
            raise UserError(f"{SETUP} of task {spec.name} names the output '{name}', which is no tensor of its inputs.",
                            "Put a tensor of the output's shape and dtype among the inputs.")  # fmt: skip
    for name, value in values.items():
        if not isinstance(value, _PLAIN):
            raise UserError(f"{SETUP} of task {spec.name} gives '{name}' as a {type(value).__name__}.",
                            "Give tensors, numbers, booleans and strings alone.")  # fmt: skip
    return Description(tensors, values, outputs)


def _arguments(spec: TaskSpec, described: dict[str, Description]) -> dict[str, Argument]:
    """The tensors as task.toml would describe them; every workload must have the same ones."""
    kinds = {
        tuple((name, str(value.dtype)) for name, value in one.tensors.items()) + one.outputs
        for one in described.values()
    }
    if len(kinds) > 1:
        raise UserError(
            f"{SETUP} of task {spec.name} gives different tensors or dtypes on different workloads.",
            "Give the same names and dtypes everywhere; only shapes may differ.",
        )
    first = next(iter(described.values()))
    return {
        name: Argument(
            shape=tuple(value.shape),
            role="output" if name in first.outputs else "input",
            dtype=str(value.dtype).removeprefix("torch."),
        )
        for name, value in first.tensors.items()
    }
