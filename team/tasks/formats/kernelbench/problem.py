"""A KernelBench problem file: its sizes, its model, its inputs. Trusted and human-owned; it is executed here.

Sizes are the module's top-level integers. They may be given other values: the file is then executed with those in the
place of its own, so everything that the file computes from them follows.
"""

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from torch import nn

from team.errors import UserError
from team.tasks.first_kernel.names import safe_name
from team.tasks.formats.recognised import PARTS

Precision = Literal["fp32", "fp16", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 1e-2}
"""Absolute and relative, as the benchmark defines them."""


@dataclass(frozen=True)
class Built:
    """A model with example inputs, all on one device. ``states`` and ``places`` say what each argument's name is:
    a parameter or buffer of the model, or the position of an input."""

    model: nn.Module
    inputs: tuple[Any, ...]
    states: Mapping[str, str]
    places: Mapping[str, int]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every argument by name: the inputs first, then parameters and buffers."""
        state = self.state()
        inputs = {name: self.inputs[place] for name, place in self.places.items()}
        return inputs | {name: state[key] for name, key in self.states.items()}

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by their own names."""
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    def call(self, given: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The model's results with other tensors in the place of its own; those that are not given are not read."""
        state = {key: _alike(value, given) for key, value in self.state().items()}
        state |= {self.states[name]: value for name, value in given.items() if name in self.states}
        inputs = list(self.inputs)
        for name, place in self.places.items():
            inputs[place] = given[name] if name in given else _alike(inputs[place], given)
        returned = torch.func.functional_call(self.model, state, tuple(inputs))
        return results_of(returned)


@dataclass(frozen=True)
class Problem:
    """One problem file, with sizes that differ from its own.

    ``training``: the mode of the model. The benchmark leaves it as it is made, in training mode, so that a batch norm
    uses its batch; where that draws random numbers there is no right result, and a problem is taken in eval mode.
    """

    path: Path
    text: str
    precision: Precision = "fp32"
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    training: bool = True

    @cached_property
    def constants(self) -> dict[str, int]:
        """Its top-level integers by name, with the values that they have here."""
        found = {name: int(ast.literal_eval(value)) for name, value in _integers(ast.parse(self.text))}
        return {**found, **{name: size for name, size in self.sizes.items() if name in found}}

    def namespace(self, changes: Mapping[str, int]) -> dict[str, Any]:
        """The module, executed with its sizes and ``changes`` of them."""
        module = ModuleType("kernelbench_problem")
        module.__file__ = str(self.path)
        tree = resized(ast.parse(self.text), {**self.sizes, **changes})
        try:
            exec(compile(tree, str(self.path), "exec"), module.__dict__)
        except Exception as error:  # human-owned code may raise anything while it loads
            raise UserError(f"{self.path} does not load: {type(error).__name__}: {error}.", "Correct it.") from error
        for part in PARTS:
            if not callable(getattr(module, part, None)):
                raise UserError(f"{self.path} defines no {part}.", f"A problem file has {', '.join(PARTS)}.")
        return module.__dict__

    def built(self, changes: Mapping[str, int], device: str = "meta") -> Built:
        """The model and example inputs, in this precision, on ``device``."""
        parts = self.namespace(changes)
        try:
            with torch.no_grad(), torch.device(device):
                model = parts["Model"](*parts["get_init_inputs"]()).train(self.training)
                inputs = tuple(parts["get_inputs"]())
        except Exception as error:  # human-owned code may raise anything
            raise UserError(
                f"{self.path} cannot make its model or inputs: {type(error).__name__}: {error}.", "Correct it."
            ) from error
        model = model.to(DTYPES[self.precision])
        places = _places(parts["Model"], inputs, self.path)
        kept = tuple(self.narrowed(one) for one in inputs)
        return Built(model, kept, _states(model, [*places, *self.constants]), places)

    def inputs(self, changes: Mapping[str, int]) -> tuple[Any, ...]:
        """Fresh inputs on the host, in this precision."""
        try:
            return tuple(self.narrowed(one) for one in self._parts(changes)["get_inputs"]())
        except Exception as error:  # human-owned code may raise anything
            raise UserError(
                f"get_inputs of {self.path} raised {type(error).__name__}: {error}.", "Correct it."
            ) from error

    def _parts(self, changes: Mapping[str, int]) -> dict[str, Any]:
        """The module for some sizes, executed once."""
        key = tuple(changes.items())
        if key not in self._executed:
            self._executed[key] = self.namespace(changes)
        return self._executed[key]

    @cached_property
    def _executed(self) -> dict[tuple[tuple[str, int], ...], dict[str, Any]]:
        return {}

    def narrowed(self, value: Any) -> Any:
        """Floating-point tensors in this precision; integers, such as labels and ids, keep their dtype."""
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.to(DTYPES[self.precision])
        return value


def read_problem(
    path: Path, precision: Precision = "fp32", sizes: Mapping[str, int] | None = None, training: bool = True
) -> Problem:
    """The problem in a file; a ``UserError`` where it is none or has no such sizes."""
    try:
        text = path.read_text()
        problem = Problem(path, text, precision, dict(sizes or {}), training)
        known = problem.constants
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise UserError(f"{path} cannot be read: {error}.", "Give a KernelBench problem file.") from None
    for name in sizes or {}:
        if name not in known:
            raise UserError(
                f"{path.name} has no size '{name}'.", f"Its top-level integers are: {', '.join(known) or 'none'}."
            )
    return problem


def _alike(value: torch.Tensor, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """A copy, for a batch norm counts in it; where the given tensors are, floats in the dtype of theirs."""
    floats = [one.dtype for one in given.values() if one.is_floating_point()]
    device = next(iter(given.values())).device if given else value.device
    dtype = floats[0] if floats and value.is_floating_point() else value.dtype
    return value.detach().to(device=device, dtype=dtype, copy=True)


def results_of(returned: Any) -> tuple[torch.Tensor, ...]:
    """The tensors that a model returned: one, or several in a tuple, list or dict."""
    if isinstance(returned, torch.Tensor):
        return (returned,)
    if isinstance(returned, dict):
        returned = list(returned.values())
    if isinstance(returned, tuple | list):
        return tuple(tensor for part in returned for tensor in results_of(part))
    raise UserError(f"The model returned a {type(returned).__name__}.", "It must return tensors.")


def result_names(count: int, taken: Sequence[str]) -> list[str]:
    """``out``, or ``out1``, ``out2`` for several results."""
    names: list[str] = []
    for number in range(count):
        wish = "out" if count == 1 else f"out{number + 1}"
        names.append(safe_name(wish, [*taken, *names]))
    return names


def _integers(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    found: list[tuple[str, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0:
                found.append((node.targets[0].id, value))
    return found


def resized(tree: ast.Module, sizes: Mapping[str, int]) -> ast.Module:
    """The module, changed in place, with other values for top-level integers."""
    for name, value in _integers(tree):
        if name in sizes and isinstance(value, ast.Constant):
            value.value = sizes[name]
    return tree


def _places(model: Any, inputs: Sequence[Any], path: Path) -> dict[str, int]:
    """A name for every input that is a tensor: what ``forward`` calls it."""
    named = list(inspect.signature(model.forward).parameters)[1:]
    found: dict[str, int] = {}
    for place, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            found[safe_name(named[place] if place < len(named) else f"x{place}", found)] = place
        elif not isinstance(value, int | float | bool | str | type(None)):
            raise UserError(
                f"get_inputs of {path} gives a {type(value).__name__} as input {place + 1}.",
                "Give tensors and numbers one by one.",
            )
    return found


def _states(model: nn.Module, taken: Sequence[str]) -> dict[str, str]:
    """A name for every parameter and buffer."""
    found: dict[str, str] = {}
    for key in [*dict(model.named_parameters()), *dict(model.named_buffers())]:
        found[safe_name(key, [*taken, *found])] = key
    return found
