"""Knobs of Triton launches: found where only digits change, left alone elsewhere."""

import ast
from pathlib import Path

import pytest

from protocol.messages import Briefing, Phase, Position, Role
from roles.minds.catalog import CatalogMind
from roles.techniques.triton_launch import TritonLaunch

SOFTMAX = (Path(__file__).parents[2] / "examples" / "softmax_triton" / "softmax.py").read_text()
ADD = """\
import triton, triton.language as tl

@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

def run_kernel(x, y, o, n):
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # größe
    add[grid](x, y, o, n, BLOCK=1024, num_warps=4)
"""
NAMED = ADD.replace('grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)', "SIZE = 256").replace(
    "add[grid](x, y, o, n, BLOCK=1024, num_warps=4)",
    "add[(triton.cdiv(n, SIZE),)](\n        x, y, o, n, BLOCK=SIZE,\n    )",
)


@pytest.mark.parametrize(
    ("text", "knobs"),
    [
        (SOFTMAX, {"num_warps", "num_stages"}),
        (ADD, {"num_warps", "num_stages", "BLOCK"}),
        (NAMED, {"num_warps", "num_stages", "BLOCK"}),
        (ADD.replace('meta["BLOCK"]', "1024"), {"num_warps", "num_stages"}),
        (NAMED.replace("SIZE = 256", "SIZE = 256 if n else 128"), {"num_warps", "num_stages"}),
    ],
)
def test_only_what_the_grid_follows_is_a_knob(text: str, knobs: set[str]) -> None:
    (site,) = TritonLaunch().applies(text)
    assert set(site.choices) == knobs


@pytest.mark.parametrize("text", [SOFTMAX, ADD, NAMED])
def test_a_setting_changes_digits_and_nothing_else(text: str) -> None:
    move = TritonLaunch()
    (site,) = move.applies(text)
    setting = {name: values[0] for name, values in site.choices.items()}
    edited = move.apply(text, site, setting)
    assert edited != text
    ast.parse(edited)
    (again,) = move.applies(edited)
    assert move.apply(edited, again, setting) == edited
    assert "num_warps=8" in edited


def test_what_is_not_python_has_no_sites() -> None:
    assert TritonLaunch().applies("def (") == []


def test_the_mind_has_ideas_for_a_triton_kernel() -> None:
    told = Briefing(
        agent="a", role=Role.EXPLOITER, number=0, task="t", language="triton", numerics="reference",
        editable={"add.py": ADD}, base="b" * 40, workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
    )  # fmt: skip
    found = CatalogMind().propose(told)
    texts = {variant.files["add.py"] for variant in found.variants}
    assert (found.plan.technique, len(texts)) == ("triton_launch", len(found.variants))
    assert len(texts) > 1
