"""Triton's matrix products of singles on tensor cores: each operand as the sum of TF32 parts, sums of a step rounded.

``tl.dot`` with ``input_precision="ieee"`` is scalar multiply-adds. With ``"tf32x3"`` it is three products of TF32 parts
on tensor cores; their accumulator truncates, so only one step's terms are added inside it, and the steps' sums outside
(see ``roles.techniques.cuda.matmul_tensor``).
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Citation, Numerics, Tier, cells
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_launch import NAMED, TritonLaunch, named
from roles.techniques.triton_text import Places, TritonRewrite, parsed, site_at

SPLIT = Citation(
    "Markidis et al., NVIDIA Tensor Core Programmability, Performance and Precision, 2018",
    "https://arxiv.org/abs/1803.04014",
)


_CHOICES: Choices = {"tiles": (*NAMED, "as written")}


@dataclass(frozen=True)
class _Sum:
    """``total = tl.dot(a, b, total, input_precision="ieee")`` or ``total += tl.dot(a, b, input_precision="ieee")``."""

    statement: ast.Assign | ast.AugAssign
    kernel: str
    total: str
    operands: str


class TritonSplitDot(TritonRewrite[_Sum]):
    """Every such sum of a file becomes ``total += tl.dot(a, b, input_precision="tf32x3")``."""

    def places(self, source: str) -> Iterator[_Sum]:
        """See ``TritonRewrite``."""
        return _sums(source)

    def site(self, source: str, found: _Sum) -> Site:
        """See ``TritonRewrite``."""
        evidence = "a product of singles by scalar multiply-adds"
        place = f"the product in `{found.kernel}`"
        return site_at(source, found.statement, found.kernel, "dot", place, evidence, _CHOICES)

    def rewritten(self, source: str, found: _Sum, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``."""
        start, end = Places(source).span(found.statement)
        text = f'{found.total} += tl.dot({found.operands}, input_precision="tf32x3")'
        data = source.encode()
        return _fed((data[:start] + text.encode() + data[end:]).decode(), found.kernel, str(parameters["tiles"]))


def _fed(source: str, kernel: str, tiles: str) -> str:
    """The text with the launch of a kernel whose tiles are too small for tensor cores as ``tiles`` says."""
    launch = TritonLaunch()
    mine = [each for each in launch.applies(source) if each.presets and f":{kernel}:" in each.key]
    preset = next((each for each in (mine[0].presets if len(mine) == 1 else ()) if named(each) == tiles), None)
    now = {name: values[-1] for name, values in mine[0].choices.items()} if mine else {}
    return launch.apply(source, mine[0], {**now, **preset}) if preset is not None else source


def _sums(source: str) -> Iterator[_Sum]:
    tree = parsed(source)
    for kernel in tree.body if tree is not None else ():
        if isinstance(kernel, ast.FunctionDef):
            found = (_sum(node, kernel) for node in ast.walk(kernel) if isinstance(node, ast.Assign | ast.AugAssign))
            yield from (each for each in found if each is not None)


def _sum(node: ast.Assign | ast.AugAssign, kernel: ast.FunctionDef) -> _Sum | None:
    call = node.value
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "tl.dot":
        return None
    words = {word.arg: ast.unparse(word.value) for word in call.keywords}
    precise = words in ({"input_precision": "'ieee'"}, {"allow_tf32": "False"})
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not precise or not isinstance(target, ast.Name) or (isinstance(node, ast.Assign) and len(node.targets) != 1):
        return None
    given = [ast.unparse(each) for each in call.args]
    added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and len(given) == 2
    passed = isinstance(node, ast.Assign) and len(given) == 3 and given[2] == target.id
    return _Sum(node, kernel.name, target.id, ", ".join(given[:2])) if added or passed else None


CARDS = (
    Card(
        name="triton_split_dot",
        title="Tensor cores on values split into TF32 parts",
        tier=Tier.ALGORITHM,
        category="matrix-instructions",
        cells=cells("compute bandwidth latency balanced occupancy"),
        languages=("triton",),
        helps="products of singles that were asked for without tensor cores, where the tolerance allows the last bits",
        hurts="products whose tiles are too small for a matrix instruction",
        bottleneck="scalar multiply-adds",
        mechanism="three products of TF32 parts in place of one of singles, at a multiple of its rate; a step's terms "
        "are added inside the tensor core, which truncates, and the steps' sums outside, with rounding",
        disproof="tensor-core throughput is low: then the tiles do not feed it",
        fallback="triton_launch",
        expected_gain=0.1,
        evidence="on an H200 1.28 times as fast at 2048 cubed, and a loss at 1024 cubed and on odd shapes",
        source=SPLIT,
        numerics=Numerics.TOLERANCE,
        transform=TritonSplitDot,
        rewrite="products of singles run on tensor cores, in tiles that feed them, each operand a sum of TF32 values",
    ),
)
