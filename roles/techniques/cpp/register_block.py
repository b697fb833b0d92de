"""Register blocking of matmul-shaped nests: MR x NR tiles of accumulators, with B packed into a contiguous panel."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.loops import Loop, loops_in
from roles.techniques.cpp.matmul import Matmul, matmul_of
from roles.techniques.cpp.render import needed, nest, renamed, replaced, substituted
from roles.techniques.cpp.syntax import Source, of_type, text_of
from roles.techniques.transform import Choices, Match, TreeTransform

_NAMES = ["MR", "NV", "W", "MT", "NR", "KC", "MC", "vec", "panel", "tile", "acc", "rows", "a", "b", "lane", "m", "n"]


@dataclass(frozen=True)
class _Writer:
    """Renders one nest; ``n`` maps the names used below to ones that the file does not use yet."""

    source: Source
    found: Matmul
    n: dict[str, str]
    parameters: Mapping[str, Parameter]

    def lines(self) -> list[str]:
        n, j = self.n, self.found.inner.j
        outer = self._stepped(j, n["j0"], n["NR"], self._row_blocks())
        accumulator = self.found.inner.reduction.update.accumulator
        return [
            f"// register_block: {n['MR']} x {n['NR']} tiles of `{accumulator}` stay in registers; what varies with",
            f"// {j.variable} is packed into a panel that every tile reads contiguously.",
            f"constexpr int {n['W']} = {self.parameters['W']};  // knob: {n['W']} in {{4, 8, 16}}",
            f"typedef float {n['vec']} __attribute__((vector_size(4 * {n['W']})));",
            f"constexpr int {n['MR']} = {self.parameters['MR']};  // knob: {n['MR']} in {{2, 3, 4, 5, 6, 8, 10, 12}}",
            f"constexpr int {n['NV']} = {self.parameters['NV']};  // knob: {n['NV']} in {{1, 2, 3, 4}}",
            f"constexpr int {n['KC']} = {self.parameters['KC']};  // knob: {n['KC']} in {{64, 128, 192, 256, 384}}",
            f"constexpr int {n['MT']} = 16;  // knob: {n['MT']} in {{4, 8, 16, 32, 64}}",
            f"constexpr int {n['NR']} = {n['NV']} * {n['W']};",
            f"constexpr int {n['MC']} = {n['MR']} * {n['MT']};",
            f"alignas(64) float {n['panel']}[{n['KC']} * {n['NR']}];",
            f"alignas(64) float {n['tile']}[{n['MC']}][{n['NR']}];",
            *outer,
        ]

    def _block(self, opening: str, body: list[str]) -> list[str]:
        return nest(opening, body, self.source.indent_unit)

    def _stepped(self, loop: Loop, name: str, step: str, body: list[str]) -> list[str]:
        start = text_of(loop.start)
        return self._block(f"for ({loop.type} {name} = {start}; {name} < {loop.bound_text}; {name} += {step})", body)

    def _end(self, loop: Loop, name: str, step: str) -> str:
        return f"std::min<{loop.type}>({name} + {step}, {text_of(loop.bound)})"

    def _inside(self, loop: Loop, at: str) -> str:
        """The loop's own variable at position ``at``, kept inside its range."""
        return f"const {loop.type} {loop.variable} = std::min<{loop.type}>({at}, {loop.bound_text} - 1);"

    def _row_blocks(self) -> list[str]:
        n, i, k = self.n, self.found.i, self.found.inner.k
        depth = [
            f"const {k.type} {n['k_end']} = {self._end(k, n['k0'], n['KC'])};",
            *self._pack(),
            *self._tiles(),
        ]
        body = [
            f"const {i.type} {n['i_end']} = {self._end(i, n['i0'], n['MC'])};",
            f"std::memset({n['tile']}, 0, sizeof {n['tile']});",
            *self._stepped(k, n["k0"], n["KC"], depth),
            *self._epilogue(),
        ]
        return self._stepped(i, n["i0"], n["MC"], body)

    def _over_k(self, body: list[str]) -> list[str]:
        n, k = self.n, self.found.inner.k
        v = k.variable
        return self._block(f"for ({k.type} {v} = {n['k0']}; {v} < {n['k_end']}; {v}++)", body)

    def _pack(self) -> list[str]:
        n, found = self.n, self.found
        read = found.column_read.node
        before = needed((*found.i_preamble, *found.inner.preamble), read)
        at = f"({found.inner.k.variable} - {n['k0']}) * {n['NR']} + {n['lane']}"
        body = [
            self._inside(found.inner.j, f"{n['j0']} + {n['lane']}"),
            *(line for each in before for line in self.source.lines_of(each)),
            f"{n['panel']}[{at}] = {text_of(read)};",
        ]
        lanes = self._block(f"for (int {n['lane']} = 0; {n['lane']} < {n['NR']}; {n['lane']}++)", body)
        return self._over_k(lanes)

    @property
    def _contiguous(self) -> bool:
        index = self.found.row_read.index
        return index is not None and stride(index, self.found.inner.k.variable) == ONE

    def _row_value(self) -> list[str]:
        """Lines that define ``a``, the value of row m at the current k."""
        n, found = self.n, self.found
        if self._contiguous:
            return [f"const float {n['a']} = {n['rows']}[{n['m']}][{found.inner.k.variable} - {n['k0']}];"]
        read = found.row_read.node
        before = [line for each in needed(found.i_preamble, read) for line in self.source.lines_of(each)]
        return [self._inside(found.i, f"{n['m0']} + {n['m']}"), *before, f"const float {n['a']} = {text_of(read)};"]

    def _row_pointers(self) -> list[str]:
        n, found = self.n, self.found
        read = found.row_read.node
        start = renamed(read, {found.inner.k.variable: n["k0"]})
        before = [line for each in needed(found.i_preamble, read) for line in self.source.lines_of(each)]
        body = [self._inside(found.i, f"{n['m0']} + {n['m']}"), *before, f"{n['rows']}[{n['m']}] = &{start};"]
        return [f"const float* {n['rows']}[{n['MR']}];", *self._over_m(body)]

    def _over_m(self, body: list[str]) -> list[str]:
        n = self.n
        return self._block(f"for (int {n['m']} = 0; {n['m']} < {n['MR']}; {n['m']}++)", body)

    def _tiles(self) -> list[str]:
        n = self.n
        corner = f"{n['tile']}[{n['m0']} - {n['i0']}]"
        depth = f"({self.found.inner.k.variable} - {n['k0']}) * {n['NR']}"
        vector = f"{n['panel']} + {depth} + {n['n']} * {n['W']}"
        over_n = f"for (int {n['n']} = 0; {n['n']} < {n['NV']}; {n['n']}++)"
        load = self._block(over_n, [f"std::memcpy(&{n['b']}[{n['n']}], {vector}, sizeof({n['vec']}));"])
        update = self._block(over_n, [f"{n['acc']}[{n['m']}][{n['n']}] += {self._term()};"])
        inner = [f"{n['vec']} {n['b']}[{n['NV']}];", *load, *self._over_m([*self._row_value(), *update])]
        body = [
            *(self._row_pointers() if self._contiguous else []),
            f"{n['vec']} {n['acc']}[{n['MR']}][{n['NV']}];",
            f"std::memcpy({n['acc']}, {corner}, sizeof {n['acc']});",
            *self._over_k(inner),
            f"std::memcpy({corner}, {n['acc']}, sizeof {n['acc']});",
        ]
        i = self.found.i
        return self._block(
            f"for ({i.type} {n['m0']} = {n['i0']}; {n['m0']} < {n['i_end']}; {n['m0']} += {n['MR']})", body
        )

    def _term(self) -> str:
        update = self.found.inner.reduction.update
        parts = [self._substituted(part) for part in update.fused or (update.term,)]
        return " * ".join(f"({part})" if update.fused and " " in part else part for part in parts)

    def _substituted(self, node: Node) -> str:
        row, column = (text_of(each.node) for each in (self.found.row_read, self.found.column_read))
        names = {row: self.n["a"], column: f"{self.n['b']}[{self.n['n']}]"}
        reads = [each for each in of_type(node, "subscript_expression") if text_of(each) in names]
        return substituted(node, [(each, names[text_of(each)]) for each in reads])

    def _epilogue(self) -> list[str]:
        n, found = self.n, self.found
        i, j = found.i, found.inner.j
        value = f"{n['tile']}[{i.variable} - {n['i0']}][{j.variable} - {n['j0']}]"
        start = text_of(found.inner.initial)
        zero = start.rstrip("fF").strip("0.") == ""
        accumulator = found.inner.reduction.update.accumulator
        body = [
            *(
                line
                for each in needed(found.inner.preamble, *found.inner.epilogue, found.inner.initial)
                for line in self._text(each)
            ),
            f"float {accumulator} = {value if zero else f'{start} + {value}'};",
            *(line for each in found.inner.epilogue for line in self._text(each)),
        ]
        end = self._end(j, n["j0"], n["NR"])
        columns = self._block(
            f"for ({j.type} {j.variable} = {n['j0']}; {j.variable} < {n['j_end']}; {j.variable}++)", body
        )
        before = needed(found.i_preamble, *found.inner.epilogue, *found.inner.preamble, found.inner.initial)
        rows = [*(line for each in before for line in self._text(each)), *columns]
        opening = f"for ({i.type} {i.variable} = {n['i0']}; {i.variable} < {n['i_end']}; {i.variable}++)"
        return [f"const {j.type} {n['j_end']} = {end};", *self._block(opening, rows)]

    def _text(self, node: Node) -> list[str]:
        return self.source.lines_of(node)


class RegisterBlock(TreeTransform):
    """Blocks a matmul-shaped nest for registers."""

    choices: ClassVar[Choices] = {"MR": (6, 4, 8, 12), "NV": (2, 3, 1, 4), "KC": (256, 128, 512), "W": (8, 16)}

    def matches(self, source: Source) -> Iterator[Match]:
        """Matmul-shaped nests of three canonical loops."""
        for loop in loops_in(source.root):
            found = matmul_of(loop)
            if found is not None:
                i, j, k = found.i.variable, found.inner.j.variable, found.inner.k.variable
                subject = f"the {i}, {j}, {k} nest that reduces `{found.inner.reduction.update.accumulator}`"
                evidence = f"lines {loop.line}-{loop.node.end_point[0] + 1}: one scalar accumulator over {k}"
                yield Match(loop.node, subject, evidence, found)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Pack, multiply in register tiles, then run the kernel's own epilogue on every tile."""
        found: Matmul = match.data
        names = {name: source.fresh(name) for name in _NAMES}
        i, j, k = found.i.variable, found.inner.j.variable, found.inner.k.variable
        for key, name in (("i0", f"{i}0"), ("j0", f"{j}0"), ("k0", f"{k}0"), ("m0", f"{i}1")):
            names[key] = source.fresh(name)
        for key, name in (("i_end", f"{i}_end"), ("j_end", f"{j}_end"), ("k_end", f"{k}_end")):
            names[key] = source.fresh(name)
        writer = _Writer(source, found, names, parameters)
        return replaced(source, match.node, writer.lines(), ("algorithm", "cstring"))
