"""Kernels with one block a row, written as if one thread had the row: strides, trees and barriers taken out.

What is left is a row program that ``rows.row_program`` understands; it means the same, up to the order of sums.
"""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.reductions import update_of
from roles.techniques.cpp.render import substituted
from roles.techniques.cpp.scopes import declarations
from roles.techniques.cpp.syntax import Edit, Source, bare, field, identifiers, of_type, statements, text_of
from roles.techniques.cuda.launches import Kernel
from roles.techniques.cuda.shuffle import Tree, thread_names, trees_in


@dataclass(frozen=True)
class BlockForm:
    """The parts of a kernel with one block a row."""

    source: Source
    kernel: Kernel
    trees: tuple[Tree, ...]
    threads: frozenset[str]


def as_thread_rows(source: Source, kernel: Kernel) -> str | None:
    """The text with the kernel in one-thread-a-row form; None when it is not understood."""
    trees = tuple(trees_in(kernel))
    grid = kernel.launch.configuration[0]
    if len(kernel.launch.configuration) != 2 or grid.type != "identifier" or "blockIdx.x" not in text_of(kernel.node):
        return None
    form = BlockForm(source, kernel, trees, frozenset(thread_names(kernel)))
    row = _row_name(form)
    lines = _lines(form, row)
    if lines is None or not all(_complete(form, tree) for tree in trees):
        return None
    rows = source.fresh("row_count")
    head = text_of(kernel.node)[: kernel.body.start_byte - kernel.node.start_byte].rstrip()
    head = f"{head.removesuffix(')')}, int {rows})"
    opening = [f"int {row} = blockIdx.x * blockDim.x + threadIdx.x;", f"if ({row} >= {rows}) return;"]
    body = "\n".join(f"    {line}" for line in (*opening, *lines))
    call = f"{kernel.name}<<<({text_of(grid)} + 63) / 64, 64>>>({kernel.argument_text}, {text_of(grid)});"
    launch = kernel.launch.statement
    return source.replace(
        Edit(kernel.node.start_byte, kernel.node.end_byte, f"{head} {{\n{body}\n}}"),
        Edit(launch.start_byte, launch.end_byte, call),
    )


def _row_name(form: BlockForm) -> str:
    """The local that holds ``blockIdx.x``, or a new name."""
    for statement in statements(form.kernel.body):
        for each in declarations(statement):
            if each.value is not None and each.integer and text_of(each.value) == "blockIdx.x":
                return each.name
    return form.source.fresh("row")


def _lines(form: BlockForm, row: str) -> list[str] | None:
    """The statements without what only threads of a block need."""
    inside = {each.id for tree in form.trees for each in (tree.store, tree.loop)}
    found: list[str] = []
    for statement in statements(form.kernel.body):
        if statement.id in inside or _for_threads_only(statement, form):
            continue
        text = _as_one_thread(statement, form, row)
        if text is None:
            return None
        found += text.split("\n")
    return found


def _for_threads_only(statement: Node, form: BlockForm) -> bool:
    """Barriers, shared arrays of the trees, and names for a thread's or a block's place."""
    if text_of(statement).replace(" ", "") == "__syncthreads();":
        return True
    found = declarations(statement)
    if len(found) != 1:
        return False
    place = found[0].value is not None and text_of(found[0].value) in ("threadIdx.x", "blockIdx.x")
    tree = found[0].array and found[0].name in {each.array for each in form.trees}
    return place or tree


def _as_one_thread(statement: Node, form: BlockForm, row: str) -> str | None:
    """One statement with ``blockIdx.x`` named and combined values under the accumulator's name."""
    node, loop = statement, False
    if statement.type == "for_statement":
        loop = _strided(statement, form)
        if not loop:
            return None
    elif statement.type == "if_statement" and _first_thread(statement, form):
        inner = statements(field(statement, "consequence"))
        if len(inner) != 1:
            return None
        node = inner[0]
    swaps = [(each, row) for each in of_type(node, "field_expression") if text_of(each) == "blockIdx.x"]
    swaps += [(read, text_of(tree.value)) for tree in form.trees for read in tree.reads if _within(read, node)]
    if loop:
        declared = declarations(field(node, "initializer"))[0]
        if declared.value is None:
            return None
        swaps += [(declared.value, "0"), (field(node, "update"), f"{declared.name}++")]
    text = substituted(node, swaps)
    return None if "blockDim" in text or "threadIdx" in text or "__sh" in text else text


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _strided(loop: Node, form: BlockForm) -> bool:
    """``for (int c = t; c < n; c += blockDim.x)`` with the thread's own index."""
    initializer, update = loop.child_by_field_name("initializer"), loop.child_by_field_name("update")
    declared = declarations(initializer) if initializer is not None else []
    if update is None or len(declared) != 1 or declared[0].value is None:
        return False
    stride = text_of(update).replace(" ", "") == f"{declared[0].name}+=blockDim.x"
    return stride and text_of(declared[0].value) in form.threads


def _first_thread(statement: Node, form: BlockForm) -> bool:
    condition = text_of(bare(field(statement, "condition"))).replace(" ", "")
    alone = statement.child_by_field_name("alternative") is None
    return alone and condition in {f"{each}==0" for each in form.threads}


def _complete(form: BlockForm, tree: Tree) -> bool:
    """The tree combines an accumulator of a loop before it by the loop's own operation, and nothing uses the parts.

    A sum starts from zero in every thread; a maximum or minimum may start from any value that all threads share.
    """
    name = text_of(tree.value)
    if tree.value.type != "identifier":
        return False
    body = statements(form.kernel.body)
    loops = [each for each in body if each.type == "for_statement" and each.end_byte <= tree.store.start_byte]
    updates = [update for loop in loops for each in statements(field(loop, "body")) if (update := update_of(each))]
    mine = [each for each in updates if each.accumulator == name]
    uses = [each for each in body if name in identifiers(each) and each.id != tree.store.id]
    declared = next((one for each in uses for one in declarations(each) if one.name == name), None)
    start = text_of(declared.value).rstrip("fF").strip("0.") if declared is not None and declared.value else "?"
    steady = declared is not None and declared.value is not None and not of_threads(declared.value, form)
    good = steady and (tree.kind != "sum" or start == "")
    return len(mine) == 1 and mine[0].kind == tree.kind and len(uses) == 2 and good


def of_threads(node: Node, form: BlockForm) -> bool:
    """True when an expression differs from thread to thread."""
    return "threadIdx" in text_of(node) or bool(identifiers(node) & form.threads)
