"""Warp shuffles in place of a reduction tree in shared memory: two barriers instead of one for every halving."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.reductions import Kind
from roles.techniques.cpp.scopes import declaration_of, declarations
from roles.techniques.cpp.syntax import Edit, Source, bare, field, line_of, of_type, parse, statements, text_of
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel, kernels_in
from roles.techniques.cuda.row_functions import combine
from roles.techniques.cuda.threads import block_shape
from roles.techniques.transform import Choices

_WORDS = {"sum": "total", "max": "largest", "min": "smallest"}


@dataclass(frozen=True)
class Tree:
    """``array[t] = value; barrier; halving loop``, after which ``array[0]`` holds the combined value."""

    kernel: Kernel
    array: str
    type: str
    kind: Kind
    threads: int
    store: Node
    value: Node
    loop: Node
    reads: tuple[Node, ...]


def trees_in(kernel: Kernel) -> Iterator[Tree]:
    """The reduction trees among the statements of a kernel's body."""
    shape = block_shape(kernel.launch.configuration, kernel.launch.node)
    body = statements(kernel.body)
    if shape is None or set(shape[1:]) - {1} or shape[0] not in (64, 128, 256, 512, 1024):
        return  # one warp alone would lose the barriers that other code may rely on
    for store, barrier, loop in zip(body, body[1:], body[2:], strict=False):
        found = _tree(kernel, shape[0], store, barrier, loop)
        if found is not None:
            yield found


def _is_barrier(node: Node) -> bool:
    return text_of(node).replace(" ", "") == "__syncthreads();"


def thread_names(kernel: Kernel) -> set[str]:
    """``threadIdx.x`` and the locals that hold it."""
    found = {"threadIdx.x"}
    for statement in statements(kernel.body):
        for each in declarations(statement):
            if each.value is not None and each.integer and text_of(each.value) == "threadIdx.x":
                found.add(each.name)
    return found


def _tree(kernel: Kernel, threads: int, store: Node, barrier: Node, loop: Node) -> Tree | None:
    own = _own_store(store, thread_names(kernel))
    if own is None or not _is_barrier(barrier) or loop.type != "for_statement":
        return None
    array, value = own
    declared = declaration_of(array, store)
    shared = declared is not None and declared.array and "__shared__" in text_of(declared.node)
    kind = _halving(loop, array, thread_names(kernel))
    if declared is None or not shared or not kind or declared.type not in ("float", "int", "double"):
        return None
    reads = _later_reads(kernel, array, loop)
    tree = Tree(kernel, array, declared.type, kind, threads, store, value, loop, reads or ())
    return tree if reads else None


def _own_store(statement: Node, names: set[str]) -> tuple[str, Node] | None:
    """Array and value of ``array[t] = value`` with the thread's own index."""
    if statement.type != "expression_statement" or not statement.named_children:
        return None
    inner = statement.named_children[0]
    if inner.type != "assignment_expression" or text_of(field(inner, "operator")) != "=":
        return None
    left = field(inner, "left")
    if left.type != "subscript_expression" or field(left, "argument").type != "identifier":
        return None
    at = text_of(field(left, "indices").named_children[0])
    return (text_of(field(left, "argument")), field(inner, "right")) if at in names else None


def _halving(loop: Node, array: str, names: set[str]) -> Kind | None:
    """The operation of a tree that folds all of ``array`` into its element 0; None for any other loop."""
    header = _header(loop)
    body = statements(field(loop, "body"))
    if header is None or len(body) != 2 or body[0].type != "if_statement" or not _is_barrier(body[1]):
        return None
    step, falling = header
    condition = "".join(text_of(bare(field(body[0], "condition"))).split())
    inner = statements(field(body[0], "consequence"))
    if body[0].child_by_field_name("alternative") is not None or len(inner) != 1:
        return None
    for t in names:
        rising = {f"{t}%(2*{step})==0", f"{t}%({step}*2)==0"}
        if condition in ({f"{t}<{step}"} if falling else rising):
            return _folded("".join(text_of(inner[0]).split()), f"{array}[{t}]", f"{array}[{t}+{step}]")
    return None


def _header(loop: Node) -> tuple[str, bool] | None:
    """Name of the stride, and True when it falls from half a block to 1, False when it rises from 1."""
    declared = declarations(field(loop, "initializer"))
    if len(declared) != 1 or declared[0].value is None:
        return None
    name, start = declared[0].name, "".join(text_of(declared[0].value).split())
    condition = "".join(text_of(field(loop, "condition")).split())
    update = "".join(text_of(field(loop, "update")).split())
    falls = start in ("blockDim.x/2", "blockDim.x>>1") and condition in (f"{name}>0", f"{name}>=1", f"{name}")
    rises = start == "1" and condition == f"{name}<blockDim.x"
    if falls and update in (f"{name}/=2", f"{name}>>=1", f"{name}={name}/2", f"{name}={name}>>1"):
        return name, True
    if rises and update in (f"{name}*=2", f"{name}<<=1", f"{name}={name}*2"):
        return name, False
    return None


def _folded(text: str, mine: str, other: str) -> Kind | None:
    sums = {f"{mine}+={other};", f"{mine}={mine}+{other};"}
    if text in sums:
        return "sum"
    for kind, functions in {"max": ("fmaxf", "max", "fmax"), "min": ("fminf", "min", "fmin")}.items():
        if text in {f"{mine}={function}({mine},{other});" for function in functions}:
            return "max" if kind == "max" else "min"
    return None


def _later_reads(kernel: Kernel, array: str, loop: Node) -> tuple[Node, ...] | None:
    """Reads of element 0 after the tree; None when the array is used in any other way there."""
    found: list[Node] = []
    for statement in (each for each in statements(kernel.body) if each.start_byte >= loop.end_byte):
        if _own_store(statement, thread_names(kernel)) is not None and array in text_of(statement).split("=")[0]:
            break
        uses = [each for each in of_type(statement, "identifier") if text_of(each) == array]
        reads = [
            each
            for each in of_type(statement, "subscript_expression")
            if text_of(field(each, "argument")) == array and text_of(field(each, "indices").named_children[0]) == "0"
        ]
        targets = [field(each, "left") for each in of_type(statement, "assignment_expression")]
        written = {each.id for each in targets} & {each.id for each in reads}
        if len(uses) != len(reads) or written:
            return None
        found += reads
    return tuple(found)


class ShuffleFamily:
    """Registers are exchanged inside a warp; shared memory carries one value a warp."""

    name: ClassVar[str] = "shuffle_tree"
    title: ClassVar[str] = "shuffles"
    promise: ClassVar[float] = 0.3
    core: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Choices] = {}

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """Kernels with trees over a block of a constant power-of-two size."""
        for kernel in kernels_in(source.root):
            tree = next(trees_in(kernel), None)
            if tree is not None:
                evidence = (
                    f"line {line_of(tree.loop)}: a barrier for every halving of `{tree.array}` for its {tree.kind}"
                )
                yield kernel, evidence

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """Every tree becomes one call; its result is a value of every thread."""
        found = next((each for each in kernels_in(source.root) if each.name == kernel), None)
        tree = next(trees_in(found), None) if found is not None else None
        if tree is None:
            return None
        text = _shuffled(source, tree)
        return self.write(parse(text, "cuda"), kernel, setting) or text

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """There is nothing to choose."""
        return True


SHUFFLE = ShuffleFamily()


class ShuffleReduction(Enter):
    """Reduction trees as shuffles."""

    def __init__(self) -> None:
        super().__init__(SHUFFLE)


def _shuffled(source: Source, tree: Tree) -> str:
    """The text with one tree replaced."""
    name = source.fresh(_WORDS[tree.kind])
    declared = declaration_of(text_of(tree.value), tree.store) if tree.value.type == "identifier" else None
    alike = declared is not None and declared.type == tree.type
    value = text_of(tree.value) if alike else f"static_cast<{tree.type}>({text_of(tree.value)})"
    line = f"const {tree.type} {name} = combined_{tree.kind}<{tree.threads}>({value});  // shuffle_reduction"
    function = "" if f"combined_{tree.kind}" in source.names else combine(tree.kind) + "\n"
    edits = [
        Edit(tree.kernel.node.start_byte, tree.kernel.node.start_byte, function),
        Edit(tree.store.start_byte, tree.loop.end_byte, line),
        *(Edit(each.start_byte, each.end_byte, name) for each in tree.reads),
    ]
    return _without_array(source.replace(*edits), tree)


def _without_array(text: str, tree: Tree) -> str:
    """The shared array goes when nothing uses it any more."""
    source = Source(text, "cuda")
    uses = [each for each in of_type(source.root, "identifier") if text_of(each) == tree.array]
    declared = [each for each in of_type(source.root, "declaration") if "__shared__" in text_of(each)]
    mine = [each for each in declared if [one.name for one in declarations(each)] == [tree.array]]
    if len(uses) != 1 or len(mine) != 1:
        return text
    start = source.data.rfind(b"\n", 0, mine[0].start_byte) + 1
    return source.replace(Edit(start, mine[0].end_byte + 1, ""))
