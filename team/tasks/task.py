"""A task made runnable: inputs, reference results and tolerances, from ``task.toml`` and the reference module.

Trusted: the reference is human-owned code and is executed here, in the judge or in ``kernelteam eval``, never in a
runner. Tensors live where the inputs do. Floating-point results are compared in float64 against the reference, element
by element, as a share of the tolerance; integers and booleans must be equal; NaN and infinities must stand where the
reference has them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch

from protocol.policy import Policy
from team.errors import UserError
from team.tasks.comparison import Deviation, deviation, stated, worst_of
from team.tasks.signature import Parameter, Signature, parse_signature
from team.tasks.spec import HELD_OUT, TaskSpec, Workload, read_spec
from team.tasks.values import draw

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Buffer:
    """One pointer parameter with its role and how its extents are written in task.toml."""

    parameter: Parameter
    role: Literal["input", "output", "inout"]
    extents: tuple[str | int, ...]

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name

    @property
    def dtype(self) -> torch.dtype:
        """Its element type."""
        return getattr(torch, self.parameter.dtype)

    @property
    def is_read(self) -> bool:
        """Whether the judge fills it before a launch."""
        return self.role != "output"

    @property
    def is_written(self) -> bool:
        """Whether the judge checks it after a launch."""
        return self.role != "input"


class Task:
    """What is to be computed, on which shapes, and what counts as right."""

    def __init__(self, folder: Path, spec: TaskSpec, signature: Signature, module: ModuleType) -> None:
        self.folder = folder
        self.spec = spec
        self.signature = signature
        self._module = module
        self.buffers = tuple(_buffer(spec, parameter) for parameter in signature.pointers)
        self.inputs = tuple(buffer for buffer in self.buffers if buffer.is_read)
        self.outputs = tuple(buffer for buffer in self.buffers if buffer.is_written)
        self._shapes: dict[tuple[str, str], tuple[int, ...]] = {}
        self._parameters: dict[str, Mapping[str, inspect.Parameter]] = {}
        self.makes_inputs = callable(getattr(module, "make_inputs", None))
        self.compares = callable(getattr(module, "compare", None))
        _complete(self)

    def under(self, policy: Policy) -> "Task":
        """The same task under a campaign's law."""
        twin = copy(self)
        twin.spec = self.spec.model_copy(update={"policy": policy})
        return twin

    def held_out(self) -> "Task":
        """The same task on nothing but the shapes that no mind is told of."""
        twin = copy(self)
        alone = {"workloads": self.spec.held_out, "held_out": (), "checked": (), "known_broken": (), "interpreted": ()}
        twin.spec = self.spec.model_copy(update=alone)
        return twin

    @property
    def varying(self) -> set[str]:
        """Dims that some buffer's extents are made of."""
        return {word.strip() for buffer in self.buffers for extent in buffer.extents for word in str(extent).split("*")}

    def numbers(self, workload: Workload) -> dict[str, Any]:
        """What the kernel and the reference are given beside the tensors, by name."""
        return {**workload.dims, **workload.scalars}

    @property
    def language(self) -> Literal["cpp", "cuda"]:
        """The dialect that the source is parsed in."""
        return language_of(self.spec)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads that are checked and timed; the known broken ones are left out."""
        return self.spec.must_pass

    @property
    def all_workloads(self) -> tuple[Workload, ...]:
        """Those, and the ones that are only checked."""
        return (*self.workloads, *self.spec.checked)

    def shape(self, buffer: Buffer, workload: Workload) -> tuple[int, ...]:
        """Extents of one buffer on one workload."""
        key = (buffer.name, workload.name)
        if key not in self._shapes:
            self._shapes[key] = tuple(_extent(extent, workload, buffer.name) for extent in buffer.extents)
        return self._shapes[key]

    def make_inputs(self, workload: Workload, seed: int) -> Tensors:
        """Every input by name, from the reference module's ``make_inputs`` or from ``arguments.values``."""
        if not self.makes_inputs:
            generator = torch.Generator().manual_seed(seed)
            return {buffer.name: self._draw(buffer, workload, generator) for buffer in self.inputs}
        made = self._call("make_inputs", {**workload.dims, **workload.scalars, "seed": seed})
        return {buffer.name: self._made(buffer, workload, made) for buffer in self.inputs}

    def reference(self, workload: Workload, inputs: Mapping[str, torch.Tensor], double: bool = False) -> Tensors:
        """Every output by name. Narrow floats are computed in float32, or all floats in float64 when ``double``."""
        arguments = self.numbers(workload)
        like = next(iter(inputs.values()), torch.empty(0))  # its device, and under vmap its batch
        for buffer in self.buffers:
            wide = _wide(buffer.dtype, double)
            if buffer.is_read:
                value = inputs[buffer.name].to(wide, copy=buffer.is_written)
            else:
                value = like.new_zeros(self.shape(buffer, workload), dtype=wide)
            arguments[buffer.name] = value
        returned = self._call("reference", arguments)
        return self._outputs(arguments, returned, workload)

    def compare(
        self,
        got: Mapping[str, torch.Tensor],
        want: Mapping[str, torch.Tensor],
        ease: Mapping[str, float] | None = None,
        bounded: bool = False,
    ) -> Deviation:
        """The worst output: its largest error as a share of its tolerance; at most 1 passes.

        ``ease`` adds to an output's absolute tolerance, in the output's own units. For ``bounded`` see ``deviation``.
        """
        return worst_of(self._each(self.outputs, got, want, ease, bounded))

    def _each(
        self,
        outputs: Sequence[Buffer],
        got: Mapping[str, torch.Tensor],
        want: Mapping[str, torch.Tensor],
        ease: Mapping[str, float] | None,
        bounded: bool = False,
    ) -> Iterator[Deviation]:
        """The deviation of each of these outputs, element by element."""
        for buffer in outputs:
            tolerance, slack = self.spec.tolerance_of(buffer.name), (ease or {}).get(buffer.name, 0.0)
            ours, theirs = got[buffer.name], want[buffer.name]
            yield deviation(buffer.name, ours, theirs, buffer.dtype, tolerance, slack, bounded)

    def compare_launch(
        self, workload: Workload, inputs: Tensors, got: Tensors, want: Tensors, ease: Mapping[str, float] | None = None
    ) -> Deviation:
        """One launch's outputs; the optional ``compare`` of the reference module judges those that it answers for.

        It is called as ``compare(got, want, inputs, **dims and scalars)``, all tensors by name in their shapes and only
        to be read. It returns, by output, the error as a share of what is allowed, or a clause that says what is wrong;
        other outputs are compared as ever.
        """
        if not self.compares:
            return self.compare(got, want, ease)
        named = {"got": dict(got), "want": dict(want), "inputs": dict(inputs), **self.numbers(workload)}
        found = self._call("compare", named)
        own = found if isinstance(found, dict) else {}
        strange = sorted(own.keys() - {buffer.name for buffer in self.outputs})
        if strange or not isinstance(found, dict):
            raise UserError(
                f"compare of task {self.spec.name} answers {'for ' + strange[0] if strange else type(found).__name__}.",
                "Return a dict: output -> its error as a share of what is allowed, or a clause.",
            )
        rest = [buffer for buffer in self.outputs if buffer.name not in own]
        return worst_of([*(stated(name, value) for name, value in own.items()), *self._each(rest, got, want, ease)])

    def compare_launches(
        self,
        workload: Workload,
        inputs: Tensors,
        got: Tensors,
        want: Tensors,
        ease: Mapping[str, float] | None = None,
        bounded: bool = False,
    ) -> Deviation:
        """Several launches stacked: outputs (launches, *shape), inputs (launches, elements). See ``compare_launch``."""
        if not self.compares:
            return self.compare(got, want, ease, bounded)
        shapes = {buffer.name: self.shape(buffer, workload) for buffer in self.inputs}
        found = [
            self.compare_launch(
                workload,
                {name: inputs[name][launch].view(shape) for name, shape in shapes.items()},
                {name: value[launch] for name, value in got.items()},
                {name: value[launch] for name, value in want.items()},
                ease,
            )
            for launch in range(len(next(iter(got.values()))))
        ]
        return worst_of(found)

    def floor(self, workload: Workload) -> dict[str, float]:
        """``flops`` and ``bytes_min`` of one launch from the optional ``workload_model``; empty without one."""
        if not callable(getattr(self._module, "workload_model", None)):
            return {}
        model = self._call("workload_model", self.numbers(workload))
        try:
            return {str(key): float(value) for key, value in model.items()}
        except (AttributeError, TypeError, ValueError):
            raise UserError(
                f"workload_model of task {self.spec.name} returned {type(model).__name__}, not numbers by name.",
                "Return a dict such as {'flops': ..., 'bytes_min': ...}.",
            ) from None

    def _draw(self, buffer: Buffer, workload: Workload, generator: torch.Generator) -> torch.Tensor:
        argument = self.spec.arguments[buffer.name]
        return draw(argument.values, argument.low, argument.high, self.shape(buffer, workload), buffer.dtype, generator)

    def _made(self, buffer: Buffer, workload: Workload, made: object) -> torch.Tensor:
        value = made.get(buffer.name) if isinstance(made, dict) else None
        shape = self.shape(buffer, workload)
        if not isinstance(value, torch.Tensor) or value.dtype != buffer.dtype or tuple(value.shape) != shape:
            raise UserError(
                f"make_inputs of task {self.spec.name} gave no {buffer.parameter.dtype} tensor of shape {shape} for "
                f"'{buffer.name}' on workload {workload.name}.",
                "Return a dict with every input by its parameter's name.",
            )
        return value.detach().contiguous()

    def _outputs(self, arguments: dict[str, Any], returned: object, workload: Workload) -> Tensors:
        """What the reference returned, or what it wrote in place when it returned nothing."""
        names = [buffer.name for buffer in self.outputs]
        if returned is None:
            results = {name: arguments[name] for name in names}
        elif isinstance(returned, torch.Tensor):
            results = {names[0]: returned}
        elif isinstance(returned, dict):
            results = returned
        elif isinstance(returned, tuple | list):
            results = dict(zip(names, returned, strict=False))
        else:
            results = {}
        for buffer in self.outputs:
            value, shape = results.get(buffer.name), self.shape(buffer, workload)
            if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
                raise UserError(
                    f"The reference of task {self.spec.name} gave no tensor of shape {shape} for output "
                    f"'{buffer.name}' on workload {workload.name}.",
                    "Write into that argument in place, or return the outputs in the order of the parameters.",
                )
        return {name: results[name].detach() for name in names}

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call one function of the reference module with those arguments that it names."""
        function: Callable[..., Any] = getattr(self._module, name)
        if name not in self._parameters:
            self._parameters[name] = inspect.signature(function).parameters
        named = self._parameters[name]
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in named.values()):
            for parameter in named.values():
                if parameter.default is parameter.empty and parameter.name not in arguments:
                    raise UserError(
                        f"{name} in {self.folder / self.spec.reference} wants '{parameter.name}', which is neither a "
                        f"parameter of solve nor among the workload's dims and scalars.",
                        "Rename it, or add it to the dims or scalars of every workload.",
                    )
            arguments = {key: value for key, value in arguments.items() if key in named}
        try:
            with torch.no_grad():
                return function(**arguments)
        except NotImplementedError as error:  # what a scaffold leaves to be written says so itself
            told = f"{error}".rstrip(".") or f"{name} is not written yet"
            raise UserError(f"{told}.", f"Write it in {self.folder / self.spec.reference}.") from error
        except Exception as error:  # human-owned code may raise anything
            raise UserError(
                f"{name} in {self.folder / self.spec.reference} raised {type(error).__name__}: {error}.",
                "Correct it; it must accept the arguments of solve by name.",
            ) from error


def load_task(folder: Path, interpreted: bool = False) -> Task:
    """The task in ``folder``; whatever is wrong with it is a ``UserError``.

    ``interpreted``: for Triton's interpreter, on the small shapes that the task may have for it.
    """
    spec = read_spec(folder)
    if interpreted and spec.interpreted:
        spec = spec.model_copy(update={"workloads": spec.interpreted, "checked": (), "held_out": ()})
    try:
        source = (folder / spec.source).read_text()
    except FileNotFoundError:
        raise UserError(f"There is no file {folder / spec.source}.", "Correct 'source' in task.toml.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{folder / spec.source} cannot be read: {why}.", "Correct 'source' in task.toml.") from None
    module = load_reference(folder / spec.reference)
    if spec.contract == "triton":
        from team.tasks.triton import triton_task

        return triton_task(folder, spec, source, module)
    return Task(folder, spec, parse_signature(source, language_of(spec)), module)


def language_of(spec: TaskSpec) -> Literal["cpp", "cuda"]:
    """The dialect of a task's source."""
    return "cuda" if spec.device == "cuda" else "cpp"


def load_reference(path: Path) -> ModuleType:
    """The reference module, executed from its text so that nothing is written beside it."""
    module = ModuleType("kernelteam_reference")
    module.__file__ = str(path)
    try:
        code = compile(path.read_text(), str(path), "exec")
        exec(code, module.__dict__)
    except FileNotFoundError:
        raise UserError(f"There is no reference module at {path}.", "Correct 'reference' in task.toml.") from None
    except Exception as error:  # human-owned code may raise anything while it loads
        raise UserError(
            f"The reference module {path} does not load: {type(error).__name__}: {error}.", "Correct it."
        ) from error
    if not callable(getattr(module, "reference", None)):
        raise UserError(f"{path} defines no function 'reference'.", "Define reference(**arguments of solve).")
    return module


def _buffer(spec: TaskSpec, parameter: Parameter) -> Buffer:
    argument = spec.arguments.get(parameter.name)
    if argument is None:
        raise UserError(
            f"task.toml of {spec.name} gives no shape for the pointer '{parameter.name}' of solve.",
            f'Add under [arguments]: {parameter.name} = {{ shape = ["..."] }}',
        )
    role = argument.role or ("input" if parameter.const else "output")
    if role != "input" and parameter.const:
        raise UserError(
            f"'{parameter.name}' of task {spec.name} is const, yet its role is '{role}'.", "Make one of them agree."
        )
    return Buffer(parameter, role, argument.shape)


def _complete(task: Task) -> None:
    """Refuse a task whose arguments or workloads do not cover the signature."""
    spec, names = task.spec, {parameter.name for parameter in task.signature.pointers}
    for name in spec.arguments:
        if name not in names:
            raise UserError(
                f"task.toml of {spec.name} describes '{name}', which is no pointer of solve.", "Correct its name."
            )
    if not task.outputs:
        raise UserError(f"Task {spec.name} has no output.", "Give one argument the role 'output' or 'inout'.")
    if not task.workloads:
        raise UserError(f"Every workload of task {spec.name} is listed as known_broken.", "Mend one and take it off.")
    for workload in (*spec.workloads, *spec.checked, *spec.held_out):
        for parameter in task.signature.parameters:
            table = "dims" if parameter.is_integer else "scalars"
            given = workload.dims if parameter.is_integer else workload.scalars
            if not parameter.pointer and not parameter.is_stream and parameter.name not in given:
                raise UserError(
                    f"Workload {workload.name} of task {spec.name} has no value for '{parameter.name}'.",
                    f"Add it to the workload's {table}{f' in {HELD_OUT}' if workload in spec.held_out else ''}.",
                )
        for buffer in task.buffers:
            task.shape(buffer, workload)


def _extent(extent: str | int, workload: Workload, name: str) -> int:
    """One extent: an integer, a dim's name, or a product of both such as 'M*K'."""
    size = 1
    for factor in str(extent).split("*"):
        word = factor.strip()
        if not word.isdigit() and word not in workload.dims:
            raise UserError(
                f"The shape of '{name}' uses '{word}', which workload {workload.name} does not define.",
                "Use names from the workload's dims, integers, or products of them.",
            )
        size *= int(word) if word.isdigit() else workload.dims[word]
    if size < 1:
        raise UserError(f"The shape of '{name}' on workload {workload.name} is empty.", "Give every dim a value >= 1.")
    return size


def _wide(dtype: torch.dtype, double: bool) -> torch.dtype:
    """The dtype in which the reference computes a buffer of ``dtype``."""
    if not dtype.is_floating_point:
        return dtype
    if double or dtype is torch.float64:
        return torch.float64
    return torch.float32
