"""What every scaffold writes alike: shapes derived from the given one, tolerances by type, a reference to complete."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TOLERANCES = {
    "float64": (1e-9, 1e-9),
    "float32": (1e-4, 1e-4),
    "float16": (1e-2, 1e-2),
    "bfloat16": (2e-2, 2e-2),
    "float8_e4m3fn": (1e-1, 1e-1),
    "float8_e5m2": (2e-1, 2e-1),
}


def task_name(folder: Path) -> str:
    """A task's name from its folder's."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).lstrip("_.-") or "task"


def tolerance_lines(outputs: Sequence[str]) -> list[str]:
    """The widest tolerance of the outputs' dtypes."""
    atol, rtol = max((_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in outputs), default=(1e-4, 1e-4))
    return [
        "# |got - want| <= atol + rtol * |want|, for every element of every output.",
        "[tolerance]",
        f"default = {{ atol = {atol}, rtol = {rtol} }}",
    ]


def derived(dims: Mapping[str, int], sizes: Sequence[str]) -> list[dict[str, int]]:
    """The given dims, halves of them, one lopsided set, and one of odd numbers; only ``sizes`` vary. No set twice."""
    sets = [dict(dims), {name: max(1, dims[name] // 2) for name in sizes}]
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        sets.append({first: dims[first] * 2, last: max(1, dims[last] // 4)})
    sets.append({name: _odd(dims[name]) for name in sizes})
    whole: list[dict[str, int]] = []
    for changed in sets:
        if (one := {**dims, **changed}) not in whole:
            whole.append(one)
    return whole


def _odd(size: int) -> int:
    """About three quarters, and odd: no tile size divides it. Small sizes stay."""
    return size if size < 8 else (size * 3 // 4) | 1


def workload_lines(
    shapes: Sequence[Mapping[str, int]], sizes: Sequence[str], scalars: Mapping[str, float], kind: str = "workloads"
) -> list[str]:
    """The shapes as tables of task.toml, the first one counting twice."""
    lines = []
    if len(shapes) > 1:
        lines = [
            "# The first shape is yours; the others are derived from it. Remove those that the kernel need not handle."
        ]
    for number, dims in enumerate(shapes):
        lines += [f"[[{kind}]]", f"name = {quoted('x'.join(str(dims[name]) for name in sizes) or 'only')}"]
        lines += [f"dims = {{ {_pairs(dims)} }}"]
        if scalars:
            lines += [f"scalars = {{ {_pairs(scalars)} }}"]
        lines += ["weight = 2.0", ""] if number == 0 and kind == "workloads" else [""]
    return lines


def _pairs(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def reference_text(
    name: str,
    parameters: Sequence[str],
    numbers: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
    shapes: Mapping[str, Sequence[str]],
) -> str:
    """A reference module that refuses to pass until it is written."""
    told = "\n".join(f"    {one}: ({', '.join(shape)}{',' * (len(shape) == 1)})" for one, shape in shapes.items())
    message = f"The reference is not written yet: compute {' and '.join(outputs)} from {', '.join(inputs) or 'nothing'}"
    return f'''"""What {name} computes, in plain torch. It decides what is correct; its speed does not matter."""


def reference({", ".join(parameters)}):
    """Write every output in place, e.g. ``{outputs[0]}.copy_(...)``. Shapes:

{told}
    """
    raise NotImplementedError({quoted(f"{message} with torch")})


# The least that one launch must do. With it, impossible times are recognised; delete the comment signs to use it.
# def workload_model({", ".join(numbers)}):
#     return {{"flops": ..., "bytes_min": ...}}
'''


def quoted(text: str) -> Any:
    """As a string of TOML or Python."""
    return json.dumps(text, ensure_ascii=False)
