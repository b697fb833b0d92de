"""What an imported task's reference module offers the judge: the definition's ``run`` as a task's functions. Trusted.

``reference.py`` of such a task holds the definition's text as it is, followed by a call of ``serve``.
"""

import ast
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from team.errors import UserError
from team.tasks.formats.flashinfer.blobs import read_tensor
from team.tasks.formats.flashinfer.dataset import read_definition
from team.tasks.formats.flashinfer.evaluators import Verdict, evaluator_of
from team.tasks.formats.flashinfer.inputs import Case, make_inputs
from team.tasks.formats.flashinfer.schema import Definition
from team.tasks.formats.flashinfer.work import least_work

DEFINITION = "definition.json"
RECORDED = "recorded.json"  # case -> input -> [file beside it, tensor's name]
CASE = "case"  # the dim that tells workloads with recorded tensors apart

Tensors = dict[str, torch.Tensor]


class Functions(NamedTuple):
    """What a reference module defines."""

    reference: Callable[..., Tensors]
    make_inputs: Callable[..., Tensors]
    compare: Callable[..., Verdict] | None
    workload_model: Callable[..., dict[str, float]]


def serve(reference_file: str, run: Callable[..., Any]) -> Functions:
    """The functions of the task in whose folder ``reference_file`` lies; ``run`` is the definition's."""
    folder = Path(reference_file).parent
    definition = read_definition(folder / DEFINITION)
    if plain_lines(definition.reference) not in Path(reference_file).read_text():
        raise UserError(
            f"{reference_file} does not hold the reference of {definition.name} any more.",
            f"Change both or neither: {DEFINITION} is what solutions are judged by elsewhere.",
        )
    served = _Served(folder, definition, run)
    evaluator = evaluator_of(definition)
    return Functions(served.reference, served.make_inputs, served.compare if evaluator else None, served.workload_model)


def plain_lines(text: str) -> str:
    """The text with the line ends of this system."""
    return "\n".join(text.strip().splitlines())


class _Served:
    """One task's definition with its recorded tensors."""

    def __init__(self, folder: Path, definition: Definition, run: Callable[..., Any]) -> None:
        self._folder = folder
        self._definition = definition
        self._run = run
        self._by_name = set(inspect.signature(run).parameters) == set(definition.inputs)
        self._written = written_inputs(definition)
        self._recorded: list[dict[str, list[str]]] = []
        if (folder / RECORDED).is_file():
            self._recorded = json.loads((folder / RECORDED).read_text())

    def reference(self, **named: Any) -> Tensors:
        """Every output by name."""
        given = {name: named[name] for name in self._definition.inputs}
        given |= {name: given[name].clone() for name in self._written}
        with torch.no_grad():
            returned = self._run(**given) if self._by_name else self._run(*given.values())
        values = list(returned) if isinstance(returned, tuple | list) else [returned]
        return dict(zip(self._definition.outputs, values, strict=True))

    def make_inputs(self, seed: int, **numbers: float) -> Tensors:
        """Every tensor input by name, on the GPU when this process already uses one."""
        device = torch.device("cuda" if torch.cuda.is_initialized() else "cpu")
        recorded = {
            name: read_tensor(self._folder / file, key)
            for name, (file, key) in (self._recorded[int(numbers[CASE])] if CASE in numbers else {}).items()
        }
        return make_inputs(self._case(numbers), seed, device, recorded)

    def compare(self, got: Tensors, want: Tensors, inputs: Tensors, **numbers: float) -> Verdict:
        """What the definition's evaluator says of one launch."""
        evaluator = evaluator_of(self._definition)
        assert evaluator is not None
        return evaluator(got, want, inputs, numbers)

    def workload_model(self, **numbers: float) -> dict[str, float]:
        """Floor of one launch."""
        return least_work(self._case(numbers))

    def _case(self, numbers: Mapping[str, float]) -> Case:
        return Case(self._definition, {axis: int(numbers[axis]) for axis in self._definition.axes})


def written_inputs(definition: Definition) -> frozenset[str]:
    """Inputs that the reference writes into, by its text: the judge's copy must not change."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(definition.reference)):
        if isinstance(node, ast.Subscript | ast.Name) and isinstance(node.ctx, ast.Store):
            base = node.value if isinstance(node, ast.Subscript) else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            base = node.func.value
        else:
            continue
        while isinstance(base, ast.Subscript | ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name):
            found.add(base.id)
    return frozenset(found & definition.tensors.keys())
