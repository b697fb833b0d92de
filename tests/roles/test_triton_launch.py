"""Knobs of Triton launches: found where only digits change, left alone elsewhere."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.messages import Briefing, Phase, Position, Role
from roles.minds.catalog import CatalogMind
from roles.techniques.triton_dots import TritonSplitDot
from roles.techniques.triton_grouped import TritonGroupedPrograms
from roles.techniques.triton_hints import TritonEvictionHints
from roles.techniques.triton_launch import TritonLaunch
from roles.techniques.triton_persistent import TritonPersistentRows
from roles.techniques.triton_rows import TritonWholeRows
from roles.techniques.triton_sizes import TritonSizeDispatch
from roles.techniques.triton_warps import TritonLengthWarps

SOFTMAX = (Path(__file__).parents[2] / "examples" / "softmax_triton" / "softmax.py").read_text()
MATMUL = (Path(__file__).parents[2] / "examples" / "matmul_triton" / "matmul.py").read_text()
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
        (SOFTMAX, {"num_warps", "num_stages", "BLOCK"}),
        (SOFTMAX.replace("mask=at < cols)", "mask=None)").replace(", mask=None)", ")"), {"num_warps", "num_stages"}),
        (SOFTMAX.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK) % BLOCK"), {"num_warps", "num_stages"}),
        (MATMUL, {"num_warps", "num_stages", "TILE", "STEP"}),
        (MATMUL.replace("cdiv(M, 32)", "cdiv(M, 16)"), {"num_warps", "num_stages", "STEP"}),
        (MATMUL.replace("(0) * TILE", "(0) * 32"), {"num_warps", "num_stages", "STEP"}),
        (ADD, {"num_warps", "BLOCK"}),
        (NAMED, {"num_warps", "BLOCK"}),
        (ADD.replace('meta["BLOCK"]', "1024"), {"num_warps"}),
        (NAMED.replace("SIZE = 256", "SIZE = 256 if n else 128"), {"num_warps"}),
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


def test_a_number_that_the_grid_repeats_changes_along() -> None:
    (site,) = TritonLaunch().applies(MATMUL)
    edited = TritonLaunch().apply(MATMUL, site, {"TILE": 128, "STEP": 64, "num_warps": 8, "num_stages": 3})
    assert "grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))" in edited
    assert "TILE=128, STEP=64, num_warps=8)" in edited


def test_what_is_not_python_has_no_sites() -> None:
    assert all(kind().applies("def (") == [] for kind in (TritonLaunch, TritonSplitDot, TritonWholeRows))


def test_a_product_moves_to_tensor_cores_and_a_step_is_added_outside() -> None:
    (site,) = TritonSplitDot().applies(MATMUL)
    edited = TritonSplitDot().apply(MATMUL, site, {"tiles": "as written"})
    assert "TILE=32, STEP=16)" in edited
    assert '        total += tl.dot(a, b, input_precision="tf32x3")\n' in edited
    assert TritonSplitDot().applies(edited) == []


def test_a_product_on_tensor_cores_gets_tiles_that_feed_them() -> None:
    (site,) = TritonSplitDot().applies(MATMUL)
    texts = [TritonSplitDot().apply(MATMUL, site, {"tiles": tiles}) for tiles in site.choices["tiles"]]
    assert len(set(texts)) == 4
    assert "triton.cdiv(M, 128)" in texts[0]
    assert "TILE=128, STEP=32, num_warps=8)" in texts[0]
    assert "TILE=64, STEP=32, num_stages=4)" in texts[1]
    fixed = MATMUL.replace("(0) * TILE", "(0) * 32")
    assert "TILE=32" in TritonSplitDot().apply(fixed, TritonSplitDot().applies(fixed)[0], {})


@pytest.mark.parametrize(
    "text",
    [
        MATMUL.replace('"ieee"', '"tf32"'),
        MATMUL.replace("total = tl.dot(a, b, total,", "total = tl.dot(a, b, ks,"),
        MATMUL.replace('input_precision="ieee")', 'input_precision="ieee", out_dtype=tl.float16)'),
    ],
)
def test_products_of_another_kind_stay_as_they_are(text: str) -> None:
    assert text != MATMUL
    assert TritonSplitDot().applies(text) == []


def test_a_row_is_loaded_once_in_one_block() -> None:
    (site,) = TritonWholeRows().applies(SOFTMAX)
    edited = TritonWholeRows().apply(SOFTMAX, site, {})
    ast.parse(edited)
    assert "num_warps=min(max(triton.next_power_of_2(cols) // 512, 1), 16))" in edited
    assert edited.count("tl.load(") == 1
    assert "for " not in edited[edited.index("def softmax") : edited.index("def run_kernel")]
    assert "BLOCK=triton.next_power_of_2(cols)" in edited
    assert TritonWholeRows().applies(edited) == []


def test_a_load_after_a_store_is_made_again() -> None:
    last = "        tl.store(output + row + at, tl.exp(values - top) / total, mask=at < cols)\n"
    loop = SOFTMAX[SOFTMAX.rindex("    for start") : SOFTMAX.index("\n\ndef run_kernel")]
    twice = SOFTMAX.replace(loop, loop + loop)
    assert twice.count(last) == 2
    (site,) = TritonWholeRows().applies(twice)
    assert TritonWholeRows().apply(twice, site, {}).count("tl.load(") == 2


@pytest.mark.parametrize(
    "text",
    [
        MATMUL,
        ADD,
        SOFTMAX.replace(', other=float("-inf"))', ")"),
        SOFTMAX.replace("range(0, cols, BLOCK)", "range(1, cols, BLOCK)"),
        SOFTMAX.replace("(input, output, cols, BLOCK=128)", "(input, output, 64, BLOCK=128)"),
        SOFTMAX.replace("    total = 0.0\n", "    total = 0.0\n    start = 0\n"),
        SOFTMAX + "    softmax[(rows,)](input, output, cols, BLOCK=128)\n",
    ],
)  # fmt: skip
def test_rows_that_are_walked_otherwise_stay_as_they_are(text: str) -> None:
    assert TritonWholeRows().applies(text) == []


RUN = """\
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import importlib.util, torch
torch.manual_seed(1)
x, a, b = torch.randn(5, 333), torch.randn(37, 45), torch.randn(45, 29)
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("kernel", path)
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    if hasattr(kernel, "softmax"):
        y = torch.empty_like(x)
        kernel.run_kernel(x, y, 5, 333)
        assert torch.allclose(y, torch.softmax(x, -1), atol=1e-6), path
    else:
        c = torch.empty(37, 29)
        kernel.run_kernel(a, b, c, 37, 29, 45)
        assert torch.allclose(c, a @ b, atol=1e-3), path
"""


def edited(kind: type, text: str, **setting) -> str:
    move = kind()
    (site,) = move.applies(text)
    return move.apply(text, site, setting)


WHOLE = edited(TritonWholeRows, SOFTMAX, share=0)


def test_every_row_length_gets_its_warps() -> None:
    text = edited(TritonLengthWarps, WHOLE, share=256)
    assert "num_warps=min(max(triton.next_power_of_2(cols) // 256, 1), 16))" in text
    (site,) = TritonLengthWarps().applies(text)
    assert 256 not in site.choices["share"]
    assert "// 1024" in TritonLengthWarps().apply(text, site, {"share": 1024})
    assert TritonLaunch().applies(text) == [], "nothing is left: stages are those of a loop"
    assert set(TritonLaunch().applies(edited(TritonPersistentRows, text))[0].choices) == {"num_stages"}


@pytest.mark.parametrize(
    "text", [SOFTMAX, MATMUL, ADD, WHOLE.replace("next_power_of_2(cols)", "next_power_of_2(2 * cols)")]
)
def test_a_block_that_no_length_decides_keeps_its_warps(text: str) -> None:
    assert TritonLengthWarps().applies(text) == []


def test_a_fixed_grid_walks_the_rows() -> None:
    text = edited(TritonPersistentRows, WHOLE, warps=16, stages=3)
    ast.parse(text)
    assert "softmax[(min(rows, 132 * (16 // 4)),)]" in text
    counted = edited(TritonPersistentRows, edited(TritonLengthWarps, WHOLE))
    assert "132 * (32 // min(max(triton.next_power_of_2(cols) // 512, 1), 16))" in counted
    assert (
        "num_stages=3):\n        program = tl.program_id(0) + turn * tl.num_programs(0)\n        row = program.to"
        in text
    )
    assert "program_count=rows)" in text
    assert TritonPersistentRows().applies(text) == []


@pytest.mark.parametrize(
    "text",
    [
        SOFTMAX,
        MATMUL,
        ADD,
        WHOLE.replace("softmax[(rows,)]", "softmax[(rows, 1)]"),
        WHOLE.replace("tl.program_id(0).to", "(tl.program_id(0) + 0 * tl.program_id(0)).to"),
        WHOLE.replace("    total = 0.0\n", "    program = 0.0\n    total = 0.0\n"),
        WHOLE + "    softmax[(rows,)](input, output, cols, BLOCK=128)\n",
        WHOLE.replace("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr = 64)"),
    ],
)  # fmt: skip
def test_other_grids_stay_as_they_are(text: str) -> None:
    assert TritonPersistentRows().applies(text) == []


def test_accesses_say_what_the_cache_shall_keep() -> None:
    text = edited(TritonEvictionHints, WHOLE, load="evict_last")
    assert text.count('eviction_policy="evict_last"') == 1
    assert text.count('mask=at < cols, eviction_policy="evict_first")') == 1
    assert TritonEvictionHints().applies(text) == []
    assert TritonEvictionHints().applies(MATMUL) == []


def test_programs_are_walked_in_bands_and_their_tiles_stay_knobs() -> None:
    text = edited(TritonGroupedPrograms, MATMUL, group=4)
    assert "    program_1, program_0 = tl.swizzle2d(tl.program_id(1), tl.program_id(0), tl.num_programs(1), " in text
    assert "rows = program_0 * TILE" in text
    assert TritonGroupedPrograms().applies(text) == []
    assert TritonGroupedPrograms().applies(WHOLE) == []
    (site,) = TritonLaunch().applies(text)
    assert {"TILE", "STEP"} <= set(site.choices)
    twice = text.replace("rows = program_0 * TILE", "rows = program_0 + program_0 * TILE")
    assert "TILE" not in TritonLaunch().applies(twice)[0].choices


def test_small_problems_get_smaller_tiles() -> None:
    text = edited(TritonSizeDispatch, MATMUL, smaller=2)
    ast.parse(text)
    assert "    if grid[0] * grid[1] < 132:\n        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))\n" in text
    assert "TILE=16, STEP=16)\n    else:\n        matmul[grid](A, B, C, M, N, K, TILE=32, STEP=16)" in text
    assert TritonSizeDispatch().applies(text) == []


@pytest.mark.parametrize(
    "text",
    [
        SOFTMAX,
        ADD,
        MATMUL.replace("triton.cdiv(N, 32)", "triton.cdiv(N, 64)"),
        MATMUL.replace("TILE=32, STEP=16)", "TILE=32, STEP=16)\n    return C"),
        MATMUL.replace("32", "16"),
    ],
)
def test_tiles_that_the_grid_does_not_follow_stay_as_they_are(text: str) -> None:
    assert TritonSizeDispatch().applies(text) == []


def test_tiles_that_feed_tensor_cores_come_early() -> None:
    (site,) = TritonLaunch().applies(MATMUL)
    assert (site.gain or 0.0) > 0.2
    assert all(
        site.choices[name] and value in site.choices[name] for each in site.presets for name, value in each.items()
    )
    assert not TritonLaunch().applies(SOFTMAX)[0].presets


@pytest.mark.slow
def test_results_stay_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    texts = []
    for kind, text in (
        (TritonWholeRows, SOFTMAX),
        (TritonSplitDot, MATMUL),
        (TritonLaunch, SOFTMAX),
        (TritonLaunch, MATMUL),
        (TritonLengthWarps, WHOLE),
        (TritonPersistentRows, WHOLE),
        (TritonEvictionHints, WHOLE),
        (TritonGroupedPrograms, MATMUL),
        (TritonSizeDispatch, MATMUL),
    ):
        texts.append(tmp_path / f"{kind.__name__}{len(texts)}.py")
        texts[-1].write_text(edited(kind, text))
    (tmp_path / "run.py").write_text(RUN)
    subprocess.run([sys.executable, str(tmp_path / "run.py"), *map(str, texts)], check=True, timeout=100)


def test_the_mind_has_ideas_for_a_triton_kernel() -> None:
    told = Briefing(
        agent="a", role=Role.EXPLOITER, number=0, task="t", language="triton", numerics="reference",
        editable={"add.py": ADD}, base="b" * 40, workloads={}, phase=Phase.EARLY, position=Position.UNKNOWN,
    )  # fmt: skip
    found = CatalogMind().propose(told)
    texts = {variant.files["add.py"] for variant in found.variants}
    assert (found.plan.technique, len(texts)) == ("triton_launch", len(found.variants))
    assert len(texts) > 1
