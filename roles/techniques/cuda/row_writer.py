"""Writes a row program for a group of threads: rows that fit stay in registers, longer ones are walked in strides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.accesses import Access, element_type
from roles.techniques.cpp.affine import ONE, stride
from roles.techniques.cpp.reductions import Update
from roles.techniques.cpp.render import nest, renamed, substituted
from roles.techniques.cpp.scopes import assignments_to, declaration_of
from roles.techniques.cpp.syntax import Source, text_of
from roles.techniques.cuda.rows import Pass, RowProgram, Scalar, offset_of
from roles.techniques.cuda.signature import restricted


@dataclass(frozen=True)
class RowWriter:
    """Renders one program. ``LANES`` threads share a row, ``ITEMS`` values of it live in each one's registers."""

    source: Source
    program: RowProgram
    setting: Mapping[str, Parameter]

    @property
    def persistent(self) -> bool:
        """True when a fixed grid walks the rows."""
        return int(self.setting["persist"]) > 0

    @property
    def _combinations(self) -> list[Update]:
        """Every accumulator that the lanes of a row combine, in order."""
        return [update for step in self.program.passes for update in step.updates]

    @property
    def again(self) -> bool:
        """True when the one combination of a row is the next to be made for the following row."""
        return self.persistent and len(self._combinations) == 1

    @property
    def shifted(self) -> bool:
        """True when rows that begin between two vectors are moved in vectors, too."""
        return self.setting["odd"] == "shifted"

    def resident(self) -> list[str]:
        """The kernel for rows of at most LANES * ITEMS columns."""
        program, unit = self.program, self.source.indent_unit
        name, block, items = program.kernel.name, f"{program.kernel.name}_block", f"{program.kernel.name}_items"
        steps = [line for number in range(len(program.steps)) for line in self._resident_step(number)]
        body = [f"constexpr int ITEMS = {items};", *self._over_rows(steps)]
        threads = f"LANES < {block} ? {block} : LANES"
        bounds = f"__launch_bounds__({threads}, LANES < {block} ? {name}_blocks : 1)"
        head = f"__global__ void {bounds} {name}_resident{restricted(program.kernel)}"
        return [f"template <int LANES, int V{', bool SHIFTED' if self.shifted else ''}>", *nest(head, body, unit)]

    def _over_rows(self, steps: list[str]) -> list[str]:
        """The steps for a thread's row, or for all rows that fall to its place in a fixed grid."""
        program = self.program
        if not self.persistent:
            begun = f"SHIFTED ? static_cast<int>({program.row} * {program.cols} % V) : 0"
            return [*self._place(), *([f"const int shift = {begun};"] if self.shifted else []), *steps]
        shared = [line for number in range(len(program.steps)) for line in self._loaded(number, same=True)]
        first = f"{program.type} {program.row} = blockIdx.x * blockDim.y + threadIdx.y"
        walk = f"for ({first}; {program.row} < {program.rows}; {program.row} += gridDim.x * blockDim.y)"
        return ["const int lane = threadIdx.x;", *shared, *nest(walk, steps, self.source.indent_unit)]

    def long(self) -> list[str]:
        """The kernel for longer rows: every pass walks the row in chunks that fit the registers."""
        program, name = self.program, self.program.kernel.name
        steps = [line for step in program.steps for line in self._walked_step(step)]
        body = [f"constexpr int ITEMS = {name}_items;", *self._place(), *steps]
        head = f"__global__ void __launch_bounds__(LANES) {name}_long{restricted(program.kernel)}"
        return ["template <int LANES, int V>", *nest(head, body, self.source.indent_unit)]

    def _place(self) -> list[str]:
        program = self.program
        return [
            "const int lane = threadIdx.x;",
            f"const {program.type} {program.row} = blockIdx.x * blockDim.y + threadIdx.y;",
            *nest(f"if ({program.row} >= {program.rows})", ["return;"], self.source.indent_unit),
        ]

    # ------------------------------------------------------------ rows in registers

    def read_only(self) -> bool:
        """True when no array whose row is loaded into registers is written by the kernel."""
        first: dict[str, Access] = {}
        for step in self.program.passes:
            for each in self._in_order(step):
                first.setdefault(each.array, each)
        return not any(self._written(array) for array, access in first.items() if not access.write)

    def cached(self) -> dict[str, Access]:
        """Arrays that are kept in registers: contiguous floats whose row starts are aligned whenever cols % 4 == 0."""
        program = self.program
        found: dict[str, list[tuple[Access, str]]] = {}
        for step in program.passes:
            for each in step.accesses:
                found.setdefault(each.array, []).append((each, step.loop.variable))
        return {array: uses[0][0] for array, uses in found.items() if self._cacheable(uses)}

    def _cacheable(self, uses: list[tuple[Access, str]]) -> bool:
        offsets = [offset_of(each, variable) for each, variable in uses]
        own = tuple(sorted((self.program.row, self.program.cols)))
        unit = all(each.index is not None and stride(each.index, variable) == ONE for each, variable in uses)
        real = element_type(uses[0][0].array, self.program.kernel.body) == "float"
        whole = all(self._from_zero(each) for each, _ in uses if each.write)
        return unit and real and whole and all(each == offsets[0] and each in ({}, {(own): 1}) for each in offsets)

    def _from_zero(self, access: Access) -> bool:
        """True when the pass of an access begins with the first column, so that no item of its row is left out."""
        mine = (step for step in self.program.passes if any(each.node.id == access.node.id for each in step.accesses))
        return all(text_of(step.loop.start) == "0" for step in mine)

    def _resident_step(self, number: int) -> list[str]:
        step = self.program.steps[number]
        if isinstance(step, Scalar):
            return self._scalar(step)
        cached = self.cached()
        used = {each.array for each in step.accesses if each.array in cached}
        last = [array for array in sorted(used) if self._written(array) and not self._written_after(array, number)]
        loads = self._loaded(number, same=False)
        stores = [self._moved("store_row", array, cached[array]) for array in last if array in step.writes]
        return [*loads, *self._started(step), *self._items(step, cached), *self._combined(step), *stores]

    def _loaded(self, number: int, same: bool) -> list[str]:
        """Loads of the arrays that a step is the first to use: those whose row is the ``same`` for all rows of a fixed
        grid, which are loaded once, or the others."""
        step, cached = self.program.steps[number], self.cached()
        if isinstance(step, Scalar):
            return []
        used = sorted({each.array for each in step.accesses if each.array in cached})
        first = [array for array in used if not self._uses(array, number, before=True)]
        mine = [array for array in first if self._same_for_all(array, cached[array], step) == same]
        return [line for array in mine for line in self._load(array, cached[array], step)]

    def _same_for_all(self, array: str, access: Access, step: Pass) -> bool:
        return self.persistent and not self._written(array) and offset_of(access, step.loop.variable) == {}

    def _uses(self, array: str, number: int, before: bool) -> bool:
        steps = self.program.steps[:number] if before else self.program.steps[number + 1 :]
        return any(isinstance(step, Pass) and any(each.array == array for each in step.accesses) for step in steps)

    def _written(self, array: str) -> bool:
        return any(array in step.writes for step in self.program.passes)

    def _written_after(self, array: str, number: int) -> bool:
        return any(isinstance(step, Pass) and array in step.writes for step in self.program.steps[number + 1 :])

    def _load(self, array: str, access: Access, step: Pass, chunk: str = "") -> list[str]:
        declared = f"alignas(16) float {array}_items[ITEMS];"
        read_first = next(each for each in self._in_order(step) if each.array == array)
        return [declared] if read_first.write else [declared, self._moved("load_row", array, access, chunk)]

    def _in_order(self, step: Pass) -> list[Access]:
        """Accesses of a pass, reads of a statement before its store."""
        return sorted(step.accesses, key=lambda each: (self._statement_start(each, step), each.write))

    def _statement_start(self, access: Access, step: Pass) -> int:
        inside = [each.start_byte for each in step.loop.statements if each.start_byte <= access.node.start_byte]
        return max(inside, default=0)

    def _moved(self, function: str, array: str, access: Access, chunk: str = "") -> str:
        """A call that moves a thread's items of a row, or of one that starts ``chunk`` columns later."""
        row, items = f"&{self._row_start(access)}", f"{array}_items"
        row = row.removeprefix("&").removesuffix("[0]") if row.endswith("[0]") else row
        together = "true" if offset_of(access, self._variable(access)) else "false"
        row, left = (f"{row} + {chunk}", f"{self.program.cols} - {chunk}") if chunk else (row, self.program.cols)
        ends = (items, row) if function == "load_row" else (row, items)
        how, more = "", ""
        if self.shifted:
            how, more = (", false, true", ", 0") if chunk else (f", SHIFTED, {together} || !SHIFTED", ", shift")
        return f"{function}<LANES, V{how}>({ends[0]}, {ends[1]}, lane, {left}{more});"

    def _variable(self, access: Access) -> str:
        """The column's name where an access stands."""
        return next(
            step.loop.variable
            for step in self.program.passes
            if any(each.node.id == access.node.id for each in step.accesses)
        )

    def _row_start(self, access: Access) -> str:
        text = renamed(access.node, {self._variable(access): "0"})
        return re.sub(r" ?\+ ?0\]", "]", text)

    def _items(self, step: Pass, cached: Mapping[str, Access], chunk: str = "") -> list[str]:
        loop, unit = step.loop, self.source.indent_unit
        swaps = [(each.node, f"{each.array}_items[item]") for each in step.accesses if each.array in cached]
        body = [line for each in loop.statements for line in self._text(each, swaps)]
        start = text_of(loop.start)
        inside = f"{loop.variable} < {loop.bound_text}"
        shifted = self.shifted and not chunk
        inside = inside if start == "0" else f"{loop.variable} >= {start} && {inside}"
        inside = f"(!SHIFTED || {loop.variable} >= 0) && {inside}" if shifted else inside
        place = f"{f'{chunk} + ' if chunk else ''}column<LANES, V>(item, lane){' - shift' if shifted else ''}"
        element = [
            f"const int {loop.variable} = {place};",
            *nest(f"if ({inside})", body, unit),
        ]
        return ["#pragma unroll", *nest("for (int item = 0; item < ITEMS; item++)", element, unit)]

    def _text(self, node, swaps) -> list[str]:
        mine = [(at, new) for at, new in swaps if node.start_byte <= at.start_byte and at.end_byte <= node.end_byte]
        indent = self.source.indent_of(node)
        first, *rest = substituted(node, mine).split("\n")
        return [first, *(line.removeprefix(indent) for line in rest)]

    # ------------------------------------------------------------ what both kernels share

    def _started(self, step: Pass) -> list[str]:
        """A sum starts from its value in one lane and from zero in the others."""
        lines: list[str] = []
        for update in step.updates:
            if update.kind == "sum" and not self._starts_at_zero(step, update.accumulator):
                lines += nest("if (lane != 0)", [f"{update.accumulator} = 0;"], self.source.indent_unit)
        return lines

    def _starts_at_zero(self, step: Pass, name: str) -> bool:
        declared = declaration_of(name, step.loop.node)
        if declared is None or declared.value is None:
            return False
        here = all(
            step.loop.node.start_byte <= each.start_byte < step.loop.node.end_byte
            or each.start_byte >= step.loop.node.end_byte
            for each in assignments_to(declared)
        )
        return here and text_of(declared.value).rstrip("fF").strip("0.") == ""

    def _combined(self, step: Pass) -> list[str]:
        return [
            f"{each.accumulator} = combined_{each.kind}<LANES, {self._combinations.index(each)}>({each.accumulator});"
            for each in step.updates
        ]

    def _scalar(self, step: Scalar) -> list[str]:
        lines = self.source.lines_of(step.node)
        return nest("if (lane == 0)", lines, self.source.indent_unit) if step.stores else lines

    def _walked_step(self, step: Pass | Scalar) -> list[str]:
        """A pass over a row of any length: chunk by chunk, loaded and stored by every pass that needs it."""
        if isinstance(step, Scalar):
            return self._scalar(step)
        cached = self.cached()
        used = sorted({each.array for each in step.accesses if each.array in cached})
        chunk = [
            *(line for array in used for line in self._load(array, cached[array], step, "chunk")),
            *self._items(step, cached, "chunk"),
            *(self._moved("store_row", array, cached[array], "chunk") for array in used if array in step.writes),
        ]
        opening = f"for (int chunk = 0; chunk < {self.program.cols}; chunk += LANES * ITEMS)"
        return [*self._started(step), *nest(opening, chunk, self.source.indent_unit), *self._combined(step)]
