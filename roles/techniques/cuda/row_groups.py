"""A group of threads a row in place of one thread a row: a warp for short rows, a block for long ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cpp.syntax import Source, identifiers, line_of, parse
from roles.techniques.cuda.block_rows import as_thread_rows
from roles.techniques.cuda.cache_hints import LOADS, STORES
from roles.techniques.cuda.design import constants
from roles.techniques.cuda.enter import Enter
from roles.techniques.cuda.launches import Kernel, kernels_in, rewritten
from roles.techniques.cuda.row_functions import (
    COLUMN,
    combine,
    load_row,
    load_shifted_row,
    store_row,
    store_shifted_row,
)
from roles.techniques.cuda.row_writer import RowWriter
from roles.techniques.cuda.rows import RowProgram, row_program
from roles.techniques.cuda.serial import CudaHoistReciprocal, CudaStoreOnce
from roles.techniques.transform import Choices

_RESERVED = frozenset(
    [
        "lane",
        "item",
        "column",
        "chunk",
        "shift",
        "load_row",
        "store_row",
        "LANES",
        "ITEMS",
        "MOST",
        "V",
        "SHIFTED",
        "TOGETHER",
        "float4",
    ]
)
_LANES = ("lanes0", "lanes1", "lanes2", "lanes3", "lanes4")


@dataclass(frozen=True)
class Rows:
    """A kernel over rows: as it stands, and the text and program in one-thread-a-row form."""

    kernel: Kernel
    source: Source
    program: RowProgram
    threads: bool

    @property
    def evidence(self) -> str:
        """What the source shows."""
        seen = "neighbouring threads read rows that lie a whole row apart"
        return f"line {line_of(self.kernel.node)}: {seen if self.threads else 'one block a row, 32-bit loads'}"


@lru_cache(maxsize=32)
def rows_in(source: Source) -> tuple[Rows, ...]:
    """Kernels with one thread a row, or with one block a row and trees in shared memory."""
    found: list[Rows] = []
    for kernel in kernels_in(source.root):
        program, text = row_program(kernel), source.text
        threads = program is not None
        if program is None:
            text = as_thread_rows(source, kernel)
            program = _program_in(text, kernel.name)
        if program is not None and program.passes and text is not None:
            found.append(Rows(kernel, parse(text, "cuda"), program, threads))
    return tuple(found) if not _RESERVED & identifiers(source.root) else ()


def leaner(rows: Rows) -> Rows:
    """The same rows with values kept that are computed twice, and divisions by one value a row made once."""
    text = _leaner(rows.source.text, rows.kernel.name)
    program = _program_in(text, rows.kernel.name)
    return rows if program is None else replace(rows, source=parse(text, "cuda"), program=program)


@lru_cache(maxsize=32)
def _leaner(text: str, name: str) -> str:
    """The text after each serial transform that leaves a row program of the kernel."""
    for transform in (CudaStoreOnce(), CudaHoistReciprocal()):
        site = next((each for each in transform.applies(text) if each.key.startswith(f"{name}:")), None)
        changed = transform.apply(text, site, {}) if site is not None else text
        text = changed if _program_in(changed, name) is not None else text
    return text


def _program_in(text: str | None, name: str) -> RowProgram | None:
    """The row program of one kernel of a text."""
    kernels = kernels_in(parse(text, "cuda").root) if text is not None else []
    return next((row_program(each) for each in kernels if each.name == name), None)


class RowsFamily:
    """Rows that fit stay in registers between the passes; the group's size is chosen by row length at launch.

    Groups of ``lanes0`` to ``lanes4`` threads hold ``items`` values each; rows too long for the last of them are walked
    in chunks by ``far`` threads.
    """

    name: ClassVar[str] = "row_groups"
    title: ClassVar[str] = "row groups"
    promise: ClassVar[float] = 2.0
    core: ClassVar[tuple[str, ...]] = ("items", "block", *_LANES, "far")
    options: ClassVar[Choices] = {
        "items": (16, 8, 32, 4),
        "block": (256, 128, 512, 64),
        "lanes0": (8, 16, 32),
        "lanes1": (32, 16, 64),
        "lanes2": (64, 128, 32),
        "lanes3": (128, 256, 512),
        "lanes4": (256, 512, 1024),
        "far": (512, 256, 1024),
        "blocks": (1, 2, 4, 8),
        "persist": (0, 4, 2, 8, 1, 16),
        "width": (4, 2, 1),
        "odd": ("scalar", "shifted"),
        "work": ("once", "as_written"),
        "load": LOADS,
        "store": STORES,
    }

    def problems(self, source: Source) -> Iterator[tuple[Kernel, str]]:
        """See ``Family``."""
        return ((each.kernel, each.evidence) for each in rows_in(source))

    def write(self, source: Source, kernel: str, setting: Mapping[str, Parameter]) -> str | None:
        """The kernel becomes two, with a launcher; the launch in ``solve`` becomes a choice by row length."""
        found = next((each for each in rows_in(source) if each.kernel.name == kernel), None)
        if found is None:
            return None
        found = leaner(found) if setting["work"] == "once" else found
        source, program = found.source, found.program
        writer = RowWriter(source, program, setting)
        lines = [*_functions(program, writer), *_kernels(self, source, writer)]
        return rewritten(source, program.kernel, lines, _choice(source, writer))

    def sound(self, setting: Mapping[str, Parameter]) -> bool:
        """See ``Family``: longer rows get no smaller groups, and the blocks asked for fit."""
        lanes = [int(setting[name]) for name in _LANES]
        threads = int(setting["block"]) * int(setting["blocks"])
        registers = threads * (2 * int(setting["items"]) + 24) <= 65536
        shifted = setting["odd"] == "shifted"
        vectors = not shifted or (setting["width"] == 4 and int(setting["persist"]) == 0)
        return sorted(lanes) == lanes and threads <= 2048 and registers and vectors


def _functions(program: RowProgram, writer: RowWriter) -> list[str]:
    cached = writer.cached()
    reads = any(not each.write for step in program.passes for each in step.accesses if each.array in cached)
    writes = any(step.writes & set(cached) for step in program.passes)
    kinds = sorted({update.kind for step in program.passes for update in step.updates})
    load = str(writer.setting["load"]) if writer.read_only() else "plain"
    store = str(writer.setting["store"])
    moves = (load_shifted_row(load), store_shifted_row(store)) if writer.shifted else (load_row(load), store_row(store))
    loads, stores = [moves[0]] if reads else [], [moves[1]] if writes else []
    return ["\n".join([COLUMN, *loads, *stores, *(combine(kind, writer.again) for kind in kinds)])]


def _kernels(family: RowsFamily, source: Source, writer: RowWriter) -> list[str]:
    program, unit = writer.program, source.indent_unit
    name, signature = program.kernel.name, program.kernel.parameter_text
    names = ", ".join(each.name for each in program.kernel.parameters)
    width = int(writer.setting["width"])
    needed = f"({program.rows} + ROWS - 1) / ROWS"
    blocks = [f"const int blocks = {needed};"]
    if writer.persistent:
        share = f"LANES * ROWS < {name}_block ? {name}_block / (LANES * ROWS) : 1"
        blocks = [
            f"constexpr int MOST = 132 * {name}_persist * ({share});  // of any size: as many threads",
            f"const int blocks = {needed} < MOST ? {needed} : MOST;",
        ]
    odd, even = (f"{width}, true", f"{width}, false") if writer.shifted else ("1", str(width))
    launch = [f"{name}_resident<LANES, {odd}><<<blocks, dim3(LANES, ROWS)>>>({names});"]
    if width > 1:
        wide = f"{name}_resident<LANES, {even}><<<blocks, dim3(LANES, ROWS)>>>({names});"
        launch = [*nest(f"if ({program.cols} % {width} == 0)", [wide], unit)[:-1], *nest("} else", launch, unit)]
    body = [f"constexpr int ROWS = LANES <= 32 ? {name}_block / LANES : 1;  // rows a block", *blocks, *launch]
    shown = ["items", "block", *_LANES, "far", "blocks", *(["persist"] if writer.persistent else [])]
    return [
        *constants(name, family, writer.setting, shown),
        "",
        *writer.resident(),
        "",
        *writer.long(),
        "",
        "template <int LANES>",
        *nest(f"static void launch_{name}{signature}", body, unit),
    ]


def _choice(source: Source, writer: RowWriter) -> list[str]:
    """The host's choice by row length; a row that begins between two vectors takes a vector more."""
    program, width = writer.program, int(writer.setting["width"])
    kernel, unit = program.kernel, source.indent_unit
    rows, cols = kernel.argument_of(program.rows), kernel.argument_of(program.cols)
    arguments, name = kernel.argument_text, kernel.name
    lines: list[str] = []
    for each in _LANES:
        longest = f"({cols} % {width} == 0 ? {cols} : {cols} + {width - 1})" if writer.shifted else cols
        fits = f"if ({longest} <= {name}_{each} * {name}_items)"
        lines += nest(f"}} else {fits}" if lines else fits, [f"launch_{name}<{name}_{each}>({arguments});"], unit)[:-1]
    far = [f"{name}_long<{name}_far, {each}><<<{rows}, {name}_far>>>({arguments});" for each in (width, 1)]
    walked = far[-1:]
    if width > 1:
        walked = [*nest(f"if ({cols} % {width} == 0)", far[:1], unit)[:-1], *nest("} else", far[1:], unit)]
    lines += nest("} else", walked, unit)
    head = "// row_groups: a few lanes for short rows, a block for long ones; a row that fits stays in registers."
    return [head, *nest(f"if ({rows} > 0)", lines, unit)]


ROWS = RowsFamily()


class RowGroups(Enter):
    """A kernel over rows, with a group of threads a row."""

    def __init__(self) -> None:
        super().__init__(ROWS)
