"""Extents for a definition whose workloads nobody recorded, and small ones on which a CPU checks it.

Axes that depend on one another (offsets, pages, totals) follow from a few free numbers, so that every constraint holds.
"""

import ast
from dataclasses import dataclass

from team.errors import UserError
from team.tasks.formats.flashinfer.schema import Definition


@dataclass(frozen=True)
class Load:
    """How much there is to do: sequences, tokens in the cache of each, new tokens of each."""

    batch: int
    length: int
    queries: int


SMALL = (Load(2, 70, 3), Load(5, 21, 2))
USUAL = (Load(1, 1021, 17), Load(15, 2039, 5), Load(63, 4093, 3))  # odd: whole tiles hide tails
SAMPLED = (Load(33, 1, 1), Load(129, 1, 1), Load(257, 1, 1))  # few rows say little of a distribution
HEADS = 8  # query heads, where a definition leaves them open
KV_HEADS = 2


def usual_axes(definition: Definition) -> tuple[dict[str, int], ...]:
    """Var axes for which it is worth being fast, smallest first."""
    loads = SAMPLED if definition.op_type == "sampling" else USUAL
    return tuple(axes_under(definition, load) for load in loads)


def small_axes(definition: Definition) -> tuple[dict[str, int], ...]:
    """Var axes that a CPU is done with in a moment."""
    return tuple(axes_under(definition, load) for load in SMALL)


def axes_under(definition: Definition, load: Load) -> dict[str, int]:
    """Every var axis under a load; ``UserError`` names one whose meaning is not known."""
    constants = definition.constants
    page = constants.get("page_size", 1)
    pages = -(-load.length // page)
    wide = pages + -(-constants.get("topk", 0) // page)  # longer than what is selected, or nothing is
    known = {
        "M": load.batch * load.queries,
        "batch_size": load.batch,
        "num_tokens": load.batch * load.queries,
        "total_q": load.batch * load.queries,
        "total_seq_len": load.batch * load.queries,
        "seq_len": load.queries if "pool_size" in definition.axes else load.batch * load.queries,
        "len_indptr": load.batch + 1,
        "len_cu_seqlens": load.batch + 1,
        "num_seqs": load.batch,
        "num_kv_indices": load.batch * pages,
        "total_kv": load.batch * load.length,
        "max_num_pages": wide,
        "num_pages": load.batch * wide + load.batch,
        "pool_size": load.batch + 1,
        "state_cache_size": 2 * load.batch,
        "max_seq_len": load.length,
        "num_qo_heads": HEADS,
        "num_kv_heads": KV_HEADS,
    }
    for axis in definition.variables:
        if axis not in known:
            raise UserError(
                f"Nobody recorded a workload of {definition.name}, and its axis '{axis}' says nothing of its size.",
                "Put a workload into the data set's workloads/.",
            )
    return {axis: known[axis] for axis in definition.variables}


def broken_constraint(definition: Definition, axes: dict[str, int]) -> str:
    """The first constraint on axes alone that does not hold; empty when all do. Those on contents are not asked."""
    for text in definition.constraints:
        tree = ast.parse(text, mode="eval")
        if not all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree)):
            continue
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if names <= axes.keys() and not eval(compile(tree, text, "eval"), {"__builtins__": {}}, dict(axes)):
            return text
    return ""


_ARITHMETIC = (
    *(ast.Expression, ast.Compare, ast.BoolOp, ast.BinOp, ast.Name, ast.Load, ast.Constant, ast.boolop, ast.cmpop),
    *(ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv),
)
