"""A program as Triton: a kernel for every stage, which computes a block of elements. The text still has marks."""

import torch

from team.tasks.first_kernel.program import Buffer, Program, Stage, split_index
from team.tasks.first_kernel.syntax import Expression, TritonSyntax, mark, triton_real, triton_type
from team.tasks.first_kernel.write_c import HEAD, PASSED, indices, used_buffers

_BLOCK = 128
_START = {"sum": "0", "max": 'float("-inf")', "min": 'float("inf")', "prod": "1"}
_INTEGER_START = {"sum": "0", "max": "-9223372036854775808", "min": "9223372036854775807", "prod": "1"}


def written_triton(program: Program, said: str, integer: str) -> str:
    """The module with ``run_kernel``."""
    kernels = [_kernel(number, stage, program, integer) for number, stage in enumerate(program.stages)]
    imports = ["import torch", "import triton"] if program.scratch else ["import triton"]
    lines = [f'"""{said}"""', "", *imports, "import triton.language as tl", "", ""]
    lines += [line for text, _ in kernels for line in (text, "", "")]
    names = [one.name for one in (*program.inputs, *program.outputs)]
    lines.append(f"def run_kernel({', '.join(names)}{HEAD}):")
    first = program.outputs[0].name
    for one in program.scratch:
        shape = ", ".join(mark(size) if size != 1 else "1" for size in one.shape)
        made = f"torch.empty(({shape}{',' * (len(one.shape) == 1)}), dtype={one.dtype}, device={first}.device)"
        lines.append(f"    {one.name} = {made}")
    for number, (stage, (_, used)) in enumerate(zip(program.stages, kernels, strict=True)):
        grid = f"(triton.cdiv({mark(stage.target.elements)}, {_BLOCK}),)"
        given = ", ".join(one.name for one in used)
        lines.append(f"    {_name(number, stage)}[{grid}]({given}{PASSED}, BLOCK={_BLOCK})")
    return "\n".join(lines) + "\n"


def _name(number: int, stage: Stage) -> str:
    return f"stage{number}_{stage.target.name}"


def _kernel(number: int, stage: Stage, program: Program, integer: str) -> tuple[str, list[Buffer]]:
    index = indices(stage.target.shape, "i")
    body = "\n".join(f"    {line}" for line in _block(stage, index))
    used = used_buffers(stage, body, program)
    whence = "tl.program_id(0)" if integer == "int" else "tl.program_id(0).to(tl.int64)"
    places = [
        f"    {name} = {where}"
        for name, where in zip(index, split_index(TritonSyntax(), "at", stage.target.shape), strict=True)
        if name != "0" and name in body
    ]
    lines = [
        "@triton.jit",
        f"def {_name(number, stage)}({', '.join(one.name for one in used)}{HEAD}, BLOCK: tl.constexpr):",
        f"    # {stage.note}",
        f"    at = {whence} * BLOCK + tl.arange(0, BLOCK)",
        f"    live = at < {mark(stage.target.elements)}",
        *places,
        body,
    ]
    return "\n".join(lines), used


def _block(stage: Stage, index: list[str]) -> list[str]:
    """Statements that compute a block of elements and store it."""
    syntax, target = TritonSyntax(), stage.target
    turns = indices(stage.loops, "r")
    value = stage.body(syntax, index, turns)
    if not stage.combine:
        return [_stored(target, value)]
    floats = target.dtype.is_floating_point
    start, real = (_START, triton_real(target.dtype)) if floats else (_INTEGER_START, "tl.int64")
    lines, depth = [f"total = tl.full((BLOCK,), {start[stage.combine]}, {real})"], 0
    for size, one in zip(stage.loops, turns, strict=True):
        if one != "0":
            lines.append("    " * depth + f"for {one} in range({mark(size)}):")
            depth += 1
    lines.append("    " * depth + _combined(stage.combine, value))
    result = stage.finish(syntax, "total") if stage.finish else "total"
    return [*lines, _stored(target, result)]


def _combined(combine: str, value: Expression) -> str:
    if combine in ("sum", "prod"):
        return f"total {'+' if combine == 'sum' else '*'}= {value}"
    return f"total = tl.{combine}imum(total, {value})"


def _stored(target: Buffer, value: Expression) -> str:
    narrow = target.dtype is not torch.float32
    return (
        f"tl.store({target.name} + at, {f'({value}).to({triton_type(target.dtype)})' if narrow else value}, mask=live)"
    )
