"""A transposition through a padded tile in shared memory: both the loads and the stores are coalesced."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access
from roles.techniques.cpp.effects import pure_expression
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Edit, Grammar, Source, field, identifiers, indented, line_of, text_of
from roles.techniques.cuda.launches import kernels_in, without_leftovers
from roles.techniques.cuda.planes import Plane, all_accesses, apart, plane_of
from roles.techniques.transform import Choices, Match, TreeTransform

_RESERVED = frozenset(("tile", "slow", "fast"))


@dataclass(frozen=True)
class Transposed:
    """``out[q * P + p] = value(in[p * Q + q])`` with p < P and q < Q."""

    plane: Plane
    p: str
    q: str
    target: Node
    value: Node


def transposed_of(plane: Plane) -> Transposed | None:
    """The transposition that a plane is, or None."""
    found = all_accesses(plane)
    if found is None or len(plane.body) != 1 or not apart(plane, found):
        return None
    reads, writes = [each for each in found if not each.write], [each for each in found if each.write]
    if len(writes) != 1 or len(reads) != 1 or reads[0].array == writes[0].array:
        return None
    for p, q in ((plane.y, plane.x), (plane.x, plane.y)):
        if _is_transposition(plane, p, q, reads[0], writes[0]):
            return _assigned(plane, p, q)
    return None


def _is_transposition(plane: Plane, p: str, q: str, read: Access, write: Access) -> bool:
    loads = read.index == plane.matrix(p, q, plane.bound[q])
    return loads and write.index == plane.matrix(q, p, plane.bound[p])


def _assigned(plane: Plane, p: str, q: str) -> Transposed | None:
    statement = plane.body[0]
    inner = statement.named_children[0] if statement.type == "expression_statement" else statement
    if inner.type != "assignment_expression" or text_of(field(inner, "operator")) != "=":
        return None
    target, value = field(inner, "left"), field(inner, "right")
    return Transposed(plane, p, q, target, value) if pure_expression(value) else None


class TransposeTile(TreeTransform):
    """Reads along one index, writes along the other."""

    grammar: ClassVar[Grammar] = "cuda"
    choices: ClassVar[Choices] = {"tile": (32, 64), "rows": (8, 16, 4, 32)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Kernels that store each element of a matrix at its mirrored place."""
        for kernel in kernels_in(source.root):
            plane = plane_of(kernel)
            found = transposed_of(plane) if plane is not None else None
            if found is not None and not _RESERVED & identifiers(source.root):
                evidence = f"line {line_of(found.target)}: a warp's loads or stores lie a whole row apart"
                yield Match(kernel.node, f"the kernel `{kernel.name}`", evidence, found)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """A new kernel body, and a grid of tiles."""
        found: Transposed = match.data
        kernel = found.plane.kernel
        lines = [*_constants(kernel.name, parameters), "", *_kernel(source, found)]
        launch = kernel.launch.statement
        host = indented(_launch(source, found), source.indent_of(launch))
        return without_leftovers(
            source.replace(
                Edit(kernel.node.start_byte, kernel.node.end_byte, "\n".join(lines)),
                Edit(launch.start_byte, launch.end_byte, "\n".join(host).lstrip()),
            )
        )


def _constants(name: str, parameters: Mapping[str, Parameter]) -> list[str]:
    return [
        f"constexpr int {name}_tile = {parameters['tile']};  // knob: {name}_tile in {{32, 64, 96}}",
        f"constexpr int {name}_rows = {parameters['rows']};  // knob: {name}_rows in {{4, 8, 16, 32}}",
        f"constexpr int {name}_padding = 1;  // knob: {name}_padding in {{1, 2, 3}}",
    ]


def _kernel(source: Source, found: Transposed) -> list[str]:
    plane, unit, name = found.plane, source.indent_unit, found.plane.kernel.name
    p, q, kind = found.p, found.q, plane.type
    inside = f"if ({p} < {plane.bound[p]} && {q} < {plane.bound[q]})"

    def walk(slow: str, fast: str, work: str) -> list[str]:
        """Neighbouring threads take neighbours of ``fast``."""
        places = {slow: "slow", fast: "fast"}
        element = [
            f"const {kind} {p} = {p}_first + {places[p]};",
            f"const {kind} {q} = {q}_first + {places[q]};",
            *nest(inside, [work], unit),
        ]
        inner = [
            "#pragma unroll",
            *nest(f"for (int fast = threadIdx.x; fast < {name}_tile; fast += 32)", element, unit),
        ]
        return [
            "#pragma unroll",
            *nest(f"for (int slow = threadIdx.y; slow < {name}_tile; slow += {name}_rows)", inner, unit),
        ]

    body = [
        f"__shared__ float tile[{name}_tile][{name}_tile + {name}_padding];",
        f"const {kind} {q}_first = blockIdx.x * {name}_tile;",
        f"const {kind} {p}_first = blockIdx.y * {name}_tile;",
        *walk(p, q, f"tile[slow][fast] = {text_of(found.value)};"),
        "__syncthreads();",
        *walk(q, p, f"{text_of(found.target)} = tile[fast][slow];"),
    ]
    head = f"__global__ void __launch_bounds__(32 * {name}_rows) {name}{plane.kernel.parameter_text}"
    return ["// transpose_tile: rows in, columns out, through a padded tile.", *nest(head, body, unit)]


def _launch(source: Source, found: Transposed) -> list[str]:
    plane, name = found.plane, found.plane.kernel.name
    across, down = (plane.kernel.argument_of(plane.bound[each]) for each in (found.q, found.p))
    grid = f"dim3(({across} - 1) / {name}_tile + 1, ({down} - 1) / {name}_tile + 1)"
    call = f"{name}<<<{grid}, dim3(32, {name}_rows)>>>({plane.kernel.argument_text});"
    return nest(f"if ({across} > 0 && {down} > 0)", [call], source.indent_unit)
