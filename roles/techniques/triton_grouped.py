"""Programs of a two-dimensional Triton grid in bands, so that those that run together share tiles in the L2 cache."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Citation, Tier, cells
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_text import TritonRewrite, called, kernels_of, parsed, replaced, site_at

_CHOICES: Choices = {"group": (8, 4, 16, 2)}
_NAMES = ("program_0", "program_1")
SWIZZLE = Citation(
    "Tillet et al., Triton: an intermediate language and compiler for tiled neural network computations, 2019",
    "https://doi.org/10.1145/3315508.3329973",
)


@dataclass(frozen=True)
class _Tiles:
    """A kernel that asks once for its place along each of two axes. ``first`` is the first statement of its body."""

    kernel: ast.FunctionDef
    places: tuple[ast.Call, ast.Call]
    first: ast.stmt


class TritonGroupedPrograms(TritonRewrite[_Tiles]):
    """``tl.swizzle2d`` on the places: a band of a few tiles along axis 1 is walked before the next one."""

    def places(self, source: str) -> Iterator[_Tiles]:
        """See ``TritonRewrite``."""
        tree = parsed(source)
        if tree is None or any(isinstance(node, ast.Name) and node.id in _NAMES for node in ast.walk(tree)):
            return
        for kernel in kernels_of(tree):
            asked = [each for each in ast.walk(kernel) if called(each) in ("tl.program_id", "tl.num_programs")]
            texts = [ast.unparse(each) for each in asked]
            first = next((each for each in kernel.body if not _told(each)), None)
            if sorted(texts) == ["tl.program_id(0)", "tl.program_id(1)"] and first is not None:
                zero, one = sorted((each for each in asked if isinstance(each, ast.Call)), key=ast.unparse)
                if first.lineno > kernel.args.args[-1].lineno:
                    yield _Tiles(kernel, (zero, one), first)

    def site(self, source: str, found: _Tiles) -> Site:
        """See ``TritonRewrite``."""
        name, evidence = found.kernel.name, "programs in the order of their numbers, whole columns of tiles apart"
        return site_at(source, found.kernel, name, "order", f"the order of `{name}`", evidence, _CHOICES)

    def rewritten(self, source: str, found: _Tiles, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``. Programs start along axis 0 first, which is therefore the fast one of the order."""
        text = replaced(source, *zip(found.places, _NAMES, strict=True))
        extents = "tl.num_programs(1), tl.num_programs(0)"
        call = f"tl.swizzle2d(tl.program_id(1), tl.program_id(0), {extents}, {parameters['group']})"
        lines = text.split("\n")
        at = found.first.lineno - 1
        return "\n".join([*lines[:at], f"{' ' * found.first.col_offset}program_1, program_0 = {call}", *lines[at:]])


def _told(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


CARDS = (
    Card(
        name="triton_grouped_programs",
        title="Programs in bands, for the L2 cache",
        tier=Tier.DATA_MOVEMENT,
        category="block-schedule",
        cells=cells("bandwidth latency compute balanced"),
        languages=("triton",),
        helps="grids of tiles whose operands do not fit in L2 together",
        hurts="a few integer divisions a program",
        bottleneck="programs that run at the same time read different rows and columns",
        mechanism="a band of a few tiles is walked before the next one, so that neighbours share operands",
        disproof="the L2 hit rate does not rise",
        fallback="triton_launch",
        expected_gain=0.06,
        evidence="usual practice for matrix products; the measurement of this team decides",
        source=SWIZZLE,
        transform=TritonGroupedPrograms,
    ),
)
