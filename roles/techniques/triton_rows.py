"""Triton kernels that walk a row in blocks, several times: one block holds the row, which is then read once.

The loops ``for start in range(0, n, BLOCK)`` become their bodies, with a block that is no shorter than the row, and
what a later body would load again is left out. The masks, which the kernel had for its last block, do the rest.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Numerics, Tier, cells
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_kernels import block_use, kernel_named
from roles.techniques.triton_launch import TUTORIAL
from roles.techniques.triton_text import Places, TritonRewrite, parsed, site_at
from roles.techniques.triton_warps import TritonLengthWarps

_CHOICES: Choices = {"share": (512, 1024, 256, 0)}  # elements a warp, by the row's length; 0: warps as they are


@dataclass(frozen=True)
class _Rows:
    """A kernel with loops over a row in blocks. ``size`` is the block in its launch, ``length`` the host's n."""

    kernel: ast.FunctionDef
    loops: tuple[ast.For, ...]
    block: str
    size: ast.expr
    length: str


class TritonWholeRows(TritonRewrite[_Rows]):
    """One block a row in place of loops over blocks."""

    def places(self, source: str) -> Iterator[_Rows]:
        """See ``TritonRewrite``."""
        return _rows(source)

    def site(self, source: str, found: _Rows) -> Site:
        """See ``TritonRewrite``."""
        name, evidence = found.kernel.name, f"walks a row {len(found.loops)} times in blocks of {found.block}"
        return site_at(source, found.kernel, name, "rows", f"the rows of `{name}`", evidence, _CHOICES)

    def rewritten(self, source: str, found: _Rows, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``."""
        text, warps = _rewritten(source, found), TritonLengthWarps()
        sites = [each for each in warps.applies(text) if each.key.startswith(f"{found.kernel.name}:")]
        share = int(parameters["share"])
        return warps.apply(text, sites[0], {"share": share}) if share and sites else text


def _rows(source: str) -> Iterator[_Rows]:
    tree = parsed(source)
    if tree is None or "import triton\n" not in source:
        return
    launches = [call for node in ast.walk(tree) for call in _launch(node)]
    for name, call in launches:
        kernel = kernel_named(tree, name)
        found = _walked(kernel, call) if kernel is not None else None
        if found is not None and [each for each, _ in launches].count(name) == 1:
            yield found


def _launch(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """A call ``kernel[grid](...)`` with the kernel's name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
        yield node.func.value.id, node


def _walked(kernel: ast.FunctionDef, call: ast.Call) -> _Rows | None:
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]
    heads = {ast.unparse(each.iter) for each in loops if isinstance(each, ast.For)}
    if not loops or len(heads) != 1 or not all(each in kernel.body and _plain(each, kernel) for each in loops):
        return None
    first = loops[0]
    assert isinstance(first, ast.For)
    given = first.iter.args if isinstance(first.iter, ast.Call) and ast.unparse(first.iter.func) == "range" else []
    if len(given) != 3 or ast.unparse(given[0]) != "0" or not all(isinstance(each, ast.Name) for each in given[1:]):
        return None
    length, block = (ast.unparse(each) for each in given[1:])
    parameters = [each.arg for each in kernel.args.args]
    written = _set(kernel)
    use = block_use(kernel, block)
    words = {word.arg: word.value for word in call.keywords}
    at = parameters.index(length) if length in parameters else len(call.args)
    passed = call.args[at] if at < len(call.args) else words.get(length)
    size = words.get(block)
    if use is None or use.axes or use.multiplied or {length, block} & written or not isinstance(passed, ast.Name):
        return None
    if not isinstance(size, ast.Constant) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    return _Rows(kernel, tuple(each for each in loops if isinstance(each, ast.For)), block, size, passed.id)


def _plain(loop: ast.AST, kernel: ast.FunctionDef) -> bool:
    """A loop of assignments and stores whose variable lives in such loops alone, with its body on lines of its own."""
    if not isinstance(loop, ast.For) or loop.orelse or not isinstance(loop.target, ast.Name):
        return False
    outside = [each for each in kernel.body if not isinstance(each, ast.For)]
    known = any(isinstance(n, ast.Name) and n.id == loop.target.id for each in outside for n in ast.walk(each))
    simple = all(isinstance(each, ast.Assign | ast.AugAssign | ast.Expr) for each in loop.body)
    return simple and not known and loop.body[0].lineno > (loop.iter.end_lineno or loop.lineno)


def _rewritten(source: str, rows: _Rows) -> str:
    lines = source.split("\n")
    known: dict[str, set[str]] = {}
    bodies: dict[int, list[str]] = {}
    for statement in rows.kernel.body:
        if statement in rows.loops:
            assert isinstance(statement, ast.For)
            bodies[statement.lineno] = _body(statement, lines, known)
        else:
            _forget(known, statement)
    start, end = Places(source).span(rows.size)
    data = source.encode()
    text = (data[:start] + f"triton.next_power_of_2({rows.length})".encode() + data[end:]).decode()
    lines = text.split("\n")
    for loop in reversed(rows.loops):
        lines[loop.lineno - 1 : loop.end_lineno] = bodies[loop.lineno]
    return "\n".join(lines)


def _body(loop: ast.For, lines: list[str], known: dict[str, set[str]]) -> list[str]:
    """The loop's statements at its own indentation, less those whose result is at hand."""
    indent = " " * loop.col_offset
    assert isinstance(loop.target, ast.Name)
    found = [] if f"{loop.target.id} = 0" in known else [f"{indent}{loop.target.id} = 0"]
    known[f"{loop.target.id} = 0"] = {loop.target.id}
    for each in loop.body:
        text = ast.unparse(each)
        if text in known:
            continue
        _forget(known, each)
        names = _names(each)
        if isinstance(each, ast.Assign) and not _set(each) & _names(each.value):
            known[text] = names
        first, last = each.lineno - 1, each.end_lineno or each.lineno
        deep = each.col_offset - loop.col_offset
        found += [line[deep:] if line[:deep].isspace() else line for line in lines[first:last]]
    return found


def _forget(known: dict[str, set[str]], statement: ast.stmt) -> None:
    """What no longer holds after a statement: results made of names that it sets, and loads when it stores."""
    changed = {
        node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    stores = "tl.store" in ast.unparse(statement)
    for text, names in list(known.items()):
        if names & changed or (stores and "tl.load" in text):
            del known[text]


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _set(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


CARDS = (
    Card(
        name="triton_whole_rows",
        title="One block a row, read once",
        tier=Tier.ALGORITHM,
        category="parallel-decomposition",
        cells=cells("bandwidth latency occupancy balanced"),
        languages=("triton",),
        helps="row kernels that walk their row several times in small blocks",
        hurts="rows of more than some ten thousand elements, which do not fit in a program's registers",
        bottleneck="every pass loads the row again, one small block after the other",
        mechanism="the row is loaded once, all of it at once, and stays in registers between the passes",
        disproof="the rows are so long that registers spill",
        fallback="triton_launch, with longer blocks in the loops",
        expected_gain=1.0,
        evidence="usual practice for softmax-shaped kernels; the measurement of this team decides",
        source=TUTORIAL,
        numerics=Numerics.REORDERED,
        transform=TritonWholeRows,
        rewrite="a program holds its whole row in one block instead of walking it",
    ),
)
