"""What a block size means inside a Triton kernel: whether another one leaves the kernel's results as they are.

A block size may change when the kernel only counts with it: as the step of a loop, as the length of ``tl.arange``, in a
shape of zeros, and to find a program's place. Every load and store must be masked, so that the kernel minds its bounds
itself, whatever the blocks are.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from roles.techniques.triton_text import called


@dataclass(frozen=True)
class BlockUse:
    """How a kernel uses one block size: the axes whose programs it places, and whether matrix products depend on it."""

    axes: frozenset[int]
    multiplied: bool


def kernel_named(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """The one function of a module with this name."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[0] if len(found) == 1 else None


def block_use(kernel: ast.FunctionDef, name: str) -> BlockUse | None:
    """How ``name`` is used, or None when another value of it might change what is computed."""
    parents = {child: node for node in ast.walk(kernel) for child in ast.iter_child_nodes(node)}
    uses = [node for node in ast.walk(kernel) if isinstance(node, ast.Name) and node.id == name]
    grouped = grouped_places(kernel)
    axes = [_axis(parents[use], use, grouped) for use in uses if _is_place(parents[use], use, grouped)]
    counted = [use for use in uses if not _is_place(parents[use], use, grouped)]
    if not uses or not all(_counts(use, parents, grouped) for use in counted) or not _masked(kernel):
        return None
    if any(axis is None or _programs(kernel, axis, grouped) != axes.count(axis) for axis in axes):
        return None
    dots = any(called(node) == "tl.dot" for node in ast.walk(kernel))
    return BlockUse(frozenset(axis for axis in axes if axis is not None), dots)


_GROUPED = "tl.swizzle2d(tl.program_id(1), tl.program_id(0), tl.num_programs(1), tl.num_programs(0), "


def grouped_places(kernel: ast.FunctionDef) -> dict[str, int]:
    """Names that hold a program's places along axes 1 and 0 after ``tl.swizzle2d``, each with its axis."""
    found: dict[str, int] = {}
    for node in kernel.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Tuple) and _swizzled(node.value):
            found |= {ast.unparse(each): 1 - axis for axis, each in enumerate(target.elts)}
    stored = [n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return found if len(found) == 2 and all(stored.count(name) == 1 for name in found) else {}


def _swizzled(value: ast.expr) -> bool:
    text = ast.unparse(value)
    return text.startswith(_GROUPED) and text.removeprefix(_GROUPED).removesuffix(")").isdigit()


def _place_axis(side: ast.expr, grouped: Mapping[str, int]) -> int | None:
    """The axis of ``tl.program_id(axis)`` or of a name that stands for it; None for anything else."""
    if isinstance(side, ast.Name):
        return grouped.get(side.id)
    given = side.args[0] if isinstance(side, ast.Call) and called(side) == "tl.program_id" and side.args else None
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, int) else None


def _is_place(parent: ast.AST, use: ast.Name, grouped: Mapping[str, int]) -> bool:
    """True for ``tl.program_id(axis) * NAME``."""
    return _axis(parent, use, grouped) is not None


def _axis(parent: ast.AST, use: ast.Name, grouped: Mapping[str, int]) -> int | None:
    if not isinstance(parent, ast.BinOp) or not isinstance(parent.op, ast.Mult):
        return None
    return _place_axis(parent.left if parent.right is use else parent.right, grouped)


def _programs(kernel: ast.FunctionDef, axis: int | None, grouped: Mapping[str, int]) -> int:
    """How often the kernel asks for its place along an axis, the question inside ``tl.swizzle2d`` not counted."""
    if grouped:
        read = [n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        return sum(read.count(name) for name, along in grouped.items() if along == axis) + _asked(kernel, axis) - 1
    return _asked(kernel, axis)


def _asked(kernel: ast.FunctionDef, axis: int | None) -> int:
    calls = (node for node in ast.walk(kernel) if isinstance(node, ast.Call) and called(node) == "tl.program_id")
    return sum(bool(call.args) and ast.unparse(call.args[0]) == str(axis) for call in calls)


def _counts(use: ast.Name, parents: dict[ast.AST, ast.AST], grouped: Mapping[str, int]) -> bool:
    """The step of a loop, the length of a ``tl.arange`` upon such a step or a place, or an extent of ``tl.zeros``."""
    parent = parents[use]
    if isinstance(parent, ast.Call):
        step = called(parent) in ("range", "tl.range") and len(parent.args) == 3 and parent.args[2] is use
        length = called(parent) == "tl.arange" and ast.unparse(parent.args[0]) == "0" and parent.args[1] is use
        return (step and _is_loop(parents[parent], parent)) or (length and _continues(parent, use.id, parents, grouped))
    return isinstance(parent, ast.Tuple) and called(parents[parent]) == "tl.zeros"


def _continues(numbers: ast.Call, name: str, parents: dict[ast.AST, ast.AST], grouped: Mapping[str, int]) -> bool:
    """True for ``start + tl.arange(0, NAME)`` in a loop over start in steps of NAME, or upon a place times NAME."""
    total = parents[numbers]
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add):
        return False
    other = total.left if total.right is numbers else total.right
    if isinstance(other, ast.BinOp):
        return any(
            isinstance(side, ast.Name) and side.id == name and _is_place(other, side, grouped) for side in _sides(other)
        )
    around = parents[total]
    while around in parents:
        if isinstance(around, ast.For) and ast.unparse(around.target) == ast.unparse(other):
            steps = around.iter.args if isinstance(around.iter, ast.Call) else []
            return len(steps) == 3 and ast.unparse(steps[2]) == name
        around = parents[around]
    return False


def _sides(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    return node.left, node.right


def _is_loop(parent: ast.AST, call: ast.Call) -> bool:
    return isinstance(parent, ast.For) and parent.iter is call


def _masked(kernel: ast.FunctionDef) -> bool:
    """Every load says what stands in place of what is masked away, and every store is masked."""
    for node in ast.walk(kernel):
        given = {word.arg for word in node.keywords} if isinstance(node, ast.Call) else set[str | None]()
        needed = {"tl.load": {"mask", "other"}, "tl.store": {"mask"}}.get(called(node), set[str]())
        if not needed <= given:
            return False
    return True


def divisors(grid: ast.expr, axis: int) -> Iterator[ast.Constant]:
    """The constant by which the extent along an axis is divided: ``triton.cdiv(extent, 32)`` in a tuple."""
    element = grid.elts[axis] if isinstance(grid, ast.Tuple) and axis < len(grid.elts) else None
    if isinstance(element, ast.Call) and called(element) in ("triton.cdiv", "cdiv") and len(element.args) == 2:
        last = element.args[1]
        if isinstance(last, ast.Constant) and isinstance(last.value, int):
            yield last
