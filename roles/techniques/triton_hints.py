"""Eviction hints on the loads and stores of Triton kernels without matrix products: what is moved once is let go."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.card import Card, Tier, cells
from roles.techniques.knowledge import PTX
from roles.techniques.transform import Choices, Site
from roles.techniques.triton_text import TritonRewrite, called, kernels_of, parsed, replaced, site_at

_CHOICES: Choices = {"store": ("evict_first", "none"), "load": ("none", "evict_first", "evict_last")}
_MOVES = {"tl.load": "load", "tl.store": "store"}


@dataclass(frozen=True)
class _Moves:
    """A kernel's loads and stores, none of which has a hint."""

    kernel: ast.FunctionDef
    calls: tuple[ast.Call, ...]


class TritonEvictionHints(TritonRewrite[_Moves]):
    """``eviction_policy`` on every load, every store, or both."""

    def places(self, source: str) -> Iterator[_Moves]:
        """See ``TritonRewrite``."""
        tree = parsed(source)
        for kernel in kernels_of(tree) if tree is not None else ():
            calls = [each for each in ast.walk(kernel) if isinstance(each, ast.Call) and called(each) in _MOVES]
            hinted = any(word.arg not in ("mask", "other") for each in calls for word in each.keywords)
            plain = all(len(each.args) <= 2 and each.keywords for each in calls)
            products = any(called(each) == "tl.dot" for each in ast.walk(kernel))
            if calls and plain and not hinted and not products and not _nested(calls):
                yield _Moves(kernel, tuple(calls))

    def site(self, source: str, found: _Moves) -> Site:
        """See ``TritonRewrite``."""
        name, evidence = found.kernel.name, "loads and stores that say nothing of what the cache shall keep"
        return site_at(source, found.kernel, name, "hints", f"the accesses of `{name}`", evidence, _CHOICES)

    def rewritten(self, source: str, found: _Moves, parameters: Mapping[str, Parameter]) -> str:
        """See ``TritonRewrite``."""
        edits: list[tuple[ast.expr, str]] = []
        for each in found.calls:
            policy, last = parameters[_MOVES[called(each)]], each.keywords[-1].value
            if policy != "none":
                edits.append((last, f'{ast.get_source_segment(source, last)}, eviction_policy="{policy}"'))
        return replaced(source, *edits)


def _nested(calls: list[ast.Call]) -> bool:
    """True when one of the calls is inside another's last argument, where both would be edited."""
    return any(one is not other and one in ast.walk(other.keywords[-1].value) for one in calls for other in calls)


CARDS = (
    Card(
        name="triton_eviction_hints",
        title="Eviction hints for what is moved once",
        tier=Tier.ALIASING,
        category="cache-hints",
        cells=cells("bandwidth latency balanced"),
        languages=("triton",),
        helps="rows or elements that are read once and written once",
        hurts="data that the next launch would have found in L2",
        bottleneck="streamed data displaces what is reused",
        mechanism="lines that are written or read once are marked as the first to be evicted",
        disproof="no gain: then nothing reused was displaced",
        fallback="triton_launch",
        expected_gain=0.05,
        evidence="usual practice; the measurement of this team decides",
        source=PTX,
        transform=TritonEvictionHints,
    ),
)
