"""Rules of matrix products."""

from torch.fx import Node

from team.tasks.first_kernel.lower import Lowering, dtype_of, rule, shape_of
from team.tasks.first_kernel.program import Index, Value
from team.tasks.first_kernel.syntax import Expression, Syntax


@rule("mm", "bmm")
def _matmul(work: Lowering, node: Node, left: Value, right: Value) -> Value:
    """Rows of ``left`` times columns of ``right``, the dims before them alike."""
    left, right = work.real(left), work.real(right)

    def body(p: Syntax, index: Index, inner: Index) -> Expression:
        before, (row, column) = list(index)[:-2], list(index)[-2:]
        return p.infix("*", left.at(p, [*before, row, inner[0]]), right.at(p, [*before, inner[0], column]))

    return work.stage("product", shape_of(node), dtype_of(node), body, loops=(left.shape[-1],), combine="sum")
