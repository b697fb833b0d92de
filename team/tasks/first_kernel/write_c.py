"""A program as C++ (loops over every element) or CUDA (a thread for every element). The text still has marks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from team.tasks.first_kernel.program import Buffer, Program, Stage, flat_index, split_index
from team.tasks.first_kernel.syntax import CSyntax, Expression, c_real, mark

HEAD = "⟪dims⟫"
"""Where the parameters of named dims go, each with a comma before it."""
PASSED = "⟪passed⟫"
"""Where the named dims are passed on."""
_STORED = {
    "cpp": {torch.float16: "_Float16", torch.bfloat16: "__bf16"},
    "cuda": {torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"},
}
_SYNTAX = CSyntax()
_THREADS = 256


@dataclass(frozen=True)
class Dialect:
    """C++ or CUDA, and the integer type that can count a buffer's elements."""

    language: str
    integer: str

    def stored(self, dtype: torch.dtype) -> str:
        """The type of an element in memory."""
        return _STORED[self.language].get(dtype) or c_real(dtype)


def written_cpp(program: Program, said: str, integer: str) -> str:
    """One function: every stage is a nest of loops."""
    dialect = Dialect("cpp", integer)
    lines = [f"// {said}", "#include <math.h>", *(["#include <vector>"] if program.scratch else []), ""]
    lines += [f'extern "C" void solve({_parameters(program, dialect)}{HEAD}) {{']
    lines += [line for one in program.scratch for line in _room_cpp(one, dialect)]
    for stage in program.stages:
        lines += [f"    // {stage.note}", *_nest(stage, dialect)]
    return "\n".join([*lines, "}"]) + "\n"


def written_cuda(program: Program, said: str, integer: str) -> str:
    """A kernel for every stage, and ``solve``, which launches them one after the other."""
    dialect = Dialect("cuda", integer)
    headers = ["#include <cuda_runtime.h>"]
    dtypes = {one.dtype for one in (*program.inputs, *program.outputs, *program.scratch)}
    headers += ["#include <cuda_fp16.h>"] * (torch.float16 in dtypes)
    headers += ["#include <cuda_bf16.h>"] * (torch.bfloat16 in dtypes)
    kernels = [_kernel(number, stage, program, dialect) for number, stage in enumerate(program.stages)]
    lines = [f"// {said}", *headers, "", *[text for text, _ in kernels]]
    lines += [f'extern "C" void solve({_parameters(program, dialect)}{HEAD}, cudaStream_t stream) {{']
    lines += [line for one in program.scratch for line in _room_cuda(one, dialect)]
    for number, (stage, (_, used)) in enumerate(zip(program.stages, kernels, strict=True)):
        blocks = f"({mark(stage.target.elements)} + {_THREADS - 1}) / {_THREADS}"
        given = ", ".join(one.name for one in used)
        lines.append(f"    {_kernel_name(number, stage)}<<<{blocks}, {_THREADS}, 0, stream>>>({given}{PASSED});")
    return "\n".join([*lines, "}"]) + "\n"


def _parameters(program: Program, dialect: Dialect) -> str:
    inputs = [f"const {dialect.stored(one.dtype)}* {one.name}" for one in program.inputs]
    return ", ".join([*inputs, *(f"{dialect.stored(one.dtype)}* {one.name}" for one in program.outputs)])


def _room_cpp(buffer: Buffer, dialect: Dialect) -> list[str]:
    kind = dialect.stored(buffer.dtype)
    kind = "unsigned char" if kind == "bool" else kind
    return [
        f"    static std::vector<{kind}> {buffer.name}_room;",
        f"    {buffer.name}_room.resize({mark(buffer.elements)});",
        f"    {kind}* {buffer.name} = {buffer.name}_room.data();",
    ]


def _room_cuda(buffer: Buffer, dialect: Dialect) -> list[str]:
    kind, name = dialect.stored(buffer.dtype), buffer.name
    return [
        f"    static {kind}* {name} = nullptr;  // scratch, kept for later calls",
        f"    static {dialect.integer} {name}_held = 0;",
        f"    if ({name}_held < {mark(buffer.elements)}) {{",
        f"        cudaFree({name});",
        f"        cudaMalloc(&{name}, sizeof({kind}) * {mark(buffer.elements)});",
        f"        {name}_held = {mark(buffer.elements)};",
        "    }",
    ]


def indices(sizes: Sequence[int], letter: str) -> list[str]:
    """A variable for every dim that has more than one element."""
    return [f"{letter}{place}" if size != 1 else "0" for place, size in enumerate(sizes)]


def _nest(stage: Stage, dialect: Dialect) -> list[str]:
    index = indices(stage.target.shape, "i")
    lines, depth = [], 1
    for size, one in zip(stage.target.shape, index, strict=True):
        if one != "0":
            lines.append("    " * depth + _loop(one, size, dialect))
            depth += 1
    if depth == 1 and stage.combine:
        lines.append("    {")
        depth += 1
    inner = _element(stage, index, flat_index(stage.target.shape, index), dialect)
    lines += ["    " * depth + line for line in inner]
    return lines + ["    " * level + "}" for level in range(depth - 1, 0, -1)]


def _loop(variable: str, size: int, dialect: Dialect) -> str:
    return f"for ({dialect.integer} {variable} = 0; {variable} < {mark(size)}; {variable}++) {{"


_START = {"sum": 0.0, "max": float("-inf"), "min": float("inf"), "prod": 1.0}
_INTEGER_START = {"sum": "0", "max": "(-9223372036854775807ll - 1)", "min": "9223372036854775807ll", "prod": "1"}


def _element(stage: Stage, index: Sequence[str], where: str, dialect: Dialect) -> list[str]:
    """Statements that compute one element and store it."""
    target = stage.target
    turns = indices(stage.loops, "r")
    value = stage.body(_SYNTAX, index, turns)
    if not stage.combine:
        return [f"{target.name}[{where}] = {_narrowed(value, target.dtype, dialect)};"]
    real = "long long" if not target.dtype.is_floating_point else c_real(target.dtype)
    start = (
        _SYNTAX.literal(_START[stage.combine], target.dtype) if real != "long long" else _INTEGER_START[stage.combine]
    )
    lines, depth = [f"{real} total = {start};"], 0
    for size, one in zip(stage.loops, turns, strict=True):
        if one != "0":
            lines.append("    " * depth + _loop(one, size, dialect))
            depth += 1
    lines.append("    " * depth + _combined(stage.combine, value, real))
    lines += ["    " * level + "}" for level in range(depth - 1, -1, -1)]
    result = stage.finish(_SYNTAX, "total") if stage.finish else "total"
    return [*lines, f"{target.name}[{where}] = {_narrowed(result, target.dtype, dialect)};"]


def _combined(combine: str, value: Expression, real: str) -> str:
    if combine in ("sum", "prod"):
        return f"total {'+' if combine == 'sum' else '*'}= {value};"
    if real == "long long":
        sign = ">" if combine == "max" else "<"
        return f"{{ long long next = {value}; total = next {sign} total ? next : total; }}"
    return f"total = f{combine}f(total, {value});"


def _narrowed(value: Expression, dtype: torch.dtype, dialect: Dialect) -> Expression:
    kind = dialect.stored(dtype)
    return value if kind == "float" else f"({kind})({value})"


def _kernel_name(number: int, stage: Stage) -> str:
    return f"stage{number}_{stage.target.name}"


def words_of(stage: Stage) -> set[str]:
    """Every name in the text of a stage."""
    lines = _element(stage, indices(stage.target.shape, "i"), "at", Dialect("cpp", "int"))
    return set(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))


def used_buffers(stage: Stage, body: str, program: Program) -> list[Buffer]:
    """The buffers that a stage's text names, its target last."""
    others = [one for one in (*program.inputs, *program.outputs, *program.scratch) if one.name != stage.target.name]
    return [one for one in others if re.search(rf"\b{re.escape(one.name)}\b", body)] + [stage.target]


def _kernel(number: int, stage: Stage, program: Program, dialect: Dialect) -> tuple[str, list[Buffer]]:
    index = indices(stage.target.shape, "i")
    body = "\n".join(f"    {line}" for line in _element(stage, index, "at", dialect))
    used = used_buffers(stage, body, program)
    declared = [f"{'' if one is stage.target else 'const '}{dialect.stored(one.dtype)}* {one.name}" for one in used]
    found = split_index(_SYNTAX, "at", stage.target.shape)
    places = [
        f"    const {dialect.integer} {name} = {where};"
        for name, where in zip(index, found, strict=True)
        if name != "0" and name in body
    ]
    lines = [
        f"// {stage.note}",
        f"__global__ void {_kernel_name(number, stage)}({', '.join(declared)}{HEAD}) {{",
        f"    const {dialect.integer} at = blockIdx.x * ({dialect.integer})blockDim.x + threadIdx.x;",
        f"    if (at >= {mark(stage.target.elements)}) return;",
        *places,
        body,
        "}",
        "",
    ]
    return "\n".join(lines), used
