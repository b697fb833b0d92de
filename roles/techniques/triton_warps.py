"""The number of warps by the length of the block that a program holds, so that every workload gets its own."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Numerics, Tier, cells
from roles.techniques.transform import Site
from roles.techniques.triton_launch import TUTORIAL
from roles.techniques.triton_text import TritonRewrite, called, kernels_of, launches_of, parsed, replaced, site_at

_SHARES = (512, 256, 1024, 128, 2048)  # elements a warp
_SAID = re.compile(r"min\(max\((?P<block>triton\.next_power_of_2\(\w+\)) // (?P<share>\d+), 1\), 16\)")


@dataclass(frozen=True)
class _Launch:
    """A launch with one block of computed length. ``share`` is 0 where the warps are not counted by it yet."""

    kernel: str
    call: ast.Call
    block: str
    warps: ast.expr | None
    share: int


class TritonLengthWarps(TritonRewrite[_Launch]):
    """``num_warps`` as a share of ``triton.next_power_of_2(n)``."""

    def places(self, source: str) -> Iterator[_Launch]:
        """See ``TritonRewrite``."""
        tree = parsed(source)
        for kernel in kernels_of(tree) if tree is not None else ():
            for _, call in launches_of(tree, kernel.name) if tree is not None else ():
                found = _launch(kernel.name, call)
                if found is not None:
                    yield found

    def site(self, source: str, found: _Launch) -> Site:
        """See ``TritonRewrite``."""
        now = f"{found.share} elements a warp" if found.share else "as many warps for a short block as for a long one"
        others = tuple(each for each in _SHARES if each != found.share)
        place = f"the warps of `{found.kernel}`"
        return site_at(source, found.call, found.kernel, "warps", place, now, {"share": others})

    def rewritten(self, source: str, found: _Launch, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``."""
        counted = f"min(max({found.block} // {parameters['share']}, 1), 16)"
        if found.warps is not None:
            return replaced(source, (found.warps, counted))
        last = found.call.keywords[-1].value
        return replaced(source, (last, f"{ast.get_source_segment(source, last)}, num_warps={counted}"))


def _launch(kernel: str, call: ast.Call) -> _Launch | None:
    given = {word.arg: word.value for word in call.keywords if word.arg}
    blocks = [value for value in given.values() if called(value) == "triton.next_power_of_2"]
    whole = len(given) == len(call.keywords) and not any(isinstance(each, ast.Starred) for each in call.args)
    if len(blocks) != 1 or not whole or not re.fullmatch(r"triton\.next_power_of_2\(\w+\)", ast.unparse(blocks[0])):
        return None
    block, warps = ast.unparse(blocks[0]), given.get("num_warps")
    if warps is None or isinstance(warps, ast.Constant):
        return _Launch(kernel, call, block, warps, 0)
    said = _SAID.fullmatch(ast.unparse(warps))
    return _Launch(kernel, call, block, warps, int(said["share"])) if said and said["block"] == block else None


CARDS = (
    Card(
        name="triton_length_warps",
        title="Warps by the length of a row",
        tier=Tier.KNOBS,
        category="dispatch",
        cells=cells("bandwidth latency occupancy balanced"),
        languages=("triton",),
        helps="kernels whose programs hold a whole row, and workloads with rows of several lengths",
        hurts="nothing: only how many threads share a row",
        bottleneck="a short row leaves most of a program's threads without work, a long one fills their registers",
        mechanism="every thread gets the same number of elements, whatever the row's length, with 128-bit accesses",
        disproof="no share is faster",
        fallback="triton_launch",
        expected_gain=0.3,
        evidence="usual practice for row kernels; the measurement of this team decides",
        source=TUTORIAL,
        numerics=Numerics.REORDERED,
        transform=TritonLengthWarps,
    ),
)
