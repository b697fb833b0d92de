"""A fixed grid of Triton programs that walk the rows: the next row is on its way while this one is worked on."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Tier, cells
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_launch import TUTORIAL
from roles.techniques.triton_text import TritonRewrite, called, kernels_of, launches_of, parsed, replaced, site_at

_CHOICES: Choices = {"warps": (32, 64, 16), "stages": (2, 1, 3, 4)}  # warps a multiprocessor, of all its programs
_USUAL = "4"  # warps of a program where nothing is said
_NAMES = ("turn", "program", "program_count")


@dataclass(frozen=True)
class _Rows:
    """A kernel of straight lines with one program for each of ``count``; ``place`` is where it asks for its own."""

    kernel: ast.FunctionDef
    place: ast.Call
    grid: ast.Tuple
    count: str
    call: ast.Call


class TritonPersistentRows(TritonRewrite[_Rows]):
    """A loop over places in a fixed grid around the whole kernel."""

    def places(self, source: str) -> Iterator[_Rows]:
        """See ``TritonRewrite``."""
        tree = parsed(source)
        if tree is None or any(isinstance(n, ast.Name | ast.arg) and _named(n) in _NAMES for n in ast.walk(tree)):
            return
        for kernel in kernels_of(tree):
            found = _rows(tree, kernel)
            if found is not None:
                yield found

    def site(self, source: str, found: _Rows) -> Site:
        """See ``TritonRewrite``."""
        name = found.kernel.name
        evidence = f"one program for each of {found.count}, which begins with its load and ends with its store"
        return site_at(source, found.kernel, name, "grid", f"the grid of `{name}`", evidence, _CHOICES)

    def rewritten(self, source: str, found: _Rows, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``. Lines are indented last, when nothing else changes any more."""
        body, last = _statements(found.kernel), found.kernel.args.args[-1]
        first, end = body[0].lineno - 1, body[-1].end_lineno or body[-1].lineno
        step = " " * body[0].col_offset
        turns = "tl.cdiv(program_count - tl.program_id(0), tl.num_programs(0))"
        opening = [
            f"{step}for turn in tl.range(0, {turns}, num_stages={parameters['stages']}):",
            f"{step}    program = tl.program_id(0) + turn * tl.num_programs(0)",
        ]
        given = found.call.keywords[-1].value
        lines = replaced(
            source,
            (last, f"{ast.get_source_segment(source, last)}, program_count"),
            (found.place, "program"),
            (found.grid, f"(min({found.count}, 132 * ({parameters['warps']} // {_warps(source, found.call)})),)"),
            (given, f"{ast.get_source_segment(source, given)}, program_count={found.count}"),
        ).split("\n")
        inner = [f"    {line}" if line.strip() else line for line in lines[first:end]]
        return "\n".join([*lines[:first], *opening, *inner, *lines[end:]])


def _named(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""


def _statements(kernel: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its documentation."""
    first = kernel.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return kernel.body[1:] if told else kernel.body


def _rows(tree: ast.Module, kernel: ast.FunctionDef) -> _Rows | None:
    body, launches = _statements(kernel), launches_of(tree, kernel.name)
    asked = [each for each in ast.walk(kernel) if called(each) in ("tl.program_id", "tl.num_programs")]
    simple = all(isinstance(each, ast.Assign | ast.AugAssign | ast.Expr) for each in body)
    text = any(isinstance(each, ast.Constant) and "\n" in str(each.value) for part in body for each in ast.walk(part))
    if len(launches) != 1 or len(asked) != 1 or not body or not simple or text or _unusual(kernel.args):
        return None
    call, place = launches[0][1], asked[0]
    assert isinstance(call.func, ast.Subscript)
    assert isinstance(place, ast.Call)
    grid = call.func.slice
    plain = call.keywords and all(word.arg for word in call.keywords)
    if ast.unparse(place) != "tl.program_id(0)" or not plain or body[0].lineno <= kernel.args.args[-1].lineno:
        return None
    if not isinstance(grid, ast.Tuple) or len(grid.elts) != 1 or not isinstance(grid.elts[0], ast.Name):
        return None
    return _Rows(kernel, place, grid, grid.elts[0].id, call)


def _warps(source: str, call: ast.Call) -> str:
    """The warps of one program, as the launch says it."""
    said = next((word.value for word in call.keywords if word.arg == "num_warps"), None)
    return (ast.get_source_segment(source, said) or _USUAL) if said is not None else _USUAL


def _unusual(given: ast.arguments) -> bool:
    """True where a parameter cannot be put after the last one."""
    return bool(given.defaults or given.kwonlyargs or given.vararg or given.kwarg or not given.args)


CARDS = (
    Card(
        name="triton_persistent_rows",
        title="A fixed grid of programs that prefetch",
        tier=Tier.DATA_MOVEMENT,
        category="block-schedule",
        cells=cells("bandwidth latency balanced occupancy"),
        languages=("triton",),
        helps="many short programs, each of which waits for its own load",
        hurts="registers and shared memory for the row that is on its way",
        bottleneck="a program's memory traffic stands still while it computes, and its start-up is paid for every row",
        mechanism="a few programs for every multiprocessor stay; the loop over their rows is pipelined, so that the "
        "next load runs beside this row's arithmetic",
        disproof="no gain: then other resident programs had hidden the latency",
        fallback="triton_length_warps",
        expected_gain=0.12,
        evidence="usual practice for row kernels; the measurement of this team decides",
        source=TUTORIAL,
        transform=TritonPersistentRows,
        rewrite="a fixed grid of programs walks the rows",
    ),
)
