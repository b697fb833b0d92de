"""Knobs of CUDA files: integer constants, and the block size of a launch whose grid is computed from it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log2
from typing import ClassVar

from tree_sitter import Node

from protocol.messages import Parameter
from roles.techniques.cpp.knobs import Knobs
from roles.techniques.cpp.scopes import Declaration, assignments_to, declaration_of
from roles.techniques.cpp.syntax import Edit, Grammar, Source, identifiers, line_of, of_type, text_of
from roles.techniques.cuda.design import design_in
from roles.techniques.cuda.families import FAMILIES
from roles.techniques.cuda.launches import Kernel, kernels_in
from roles.techniques.cuda.threads import block_shape
from roles.techniques.transform import Choices, Match, Sound, TreeTransform, always, one_at_a_time

_DESIGNED = 0.07  # log gain of other constants than those of a design
_LINES = ("256", "128", "512", "64", "1024", "32")
_PLANES = ("32x8", "32x4", "16x16", "64x4", "32x16", "32x32", "128x2", "8x32")


class CudaKnobs(Knobs):
    """All annotated constants of the file as one parameter space; those of a design must go together.

    A design's constants were good guesses: first each of them is moved by a step, alone.
    """

    grammar: ClassVar[Grammar] = "cuda"

    def matches(self, source: Source) -> Iterator[Match]:
        """See ``Knobs``."""
        designed = design_in(source.text, FAMILIES) is not None
        for match in super().matches(source):
            near = sorted(one_at_a_time(match.choices), key=lambda each: _steps(each, match.choices))
            yield replace(match, gain=_DESIGNED, presets=tuple(near)) if designed else match

    def sound(self, source: Source) -> Sound:
        """What the design's family says of its options."""
        design = design_in(source.text, FAMILIES)
        if design is None:
            return always

        def together(setting: Mapping[str, Parameter]) -> bool:
            prefix = f"{design.kernel}_"
            turned = {name.removeprefix(prefix): value for name, value in setting.items() if name.startswith(prefix)}
            known = {name: value for name, value in turned.items() if name in design.family.options}
            return design.family.sound({**design.setting, **known})

        return together


def _steps(setting: Mapping[str, Parameter], choices: Choices) -> float:
    """How far the one constant of a setting is from what it is now, in doublings."""
    ((name, value),) = setting.items()
    return abs(log2(max(1, int(value)) / max(1, int(choices[name][0]))))


class BlockSize(TreeTransform):
    """The number of threads a block, where nothing but the grid depends on it."""

    grammar: ClassVar[Grammar] = "cuda"

    def matches(self, source: Source) -> Iterator[Match]:
        """Launches with a named constant block size, without shared memory, from which the grid is computed."""
        for kernel in kernels_in(source.root):
            declared = _named_block(kernel)
            shape = block_shape(kernel.launch.configuration, kernel.launch.node)
            if declared is None or shape is None or len(shape) > 2 or _depends_on_block(kernel):
                continue
            now = "x".join(map(str, shape))
            values = tuple(each for each in (_LINES if len(shape) == 1 else _PLANES) if each != now)
            evidence = f"line {line_of(kernel.launch.node)}: {now} threads a block"
            choices: Choices = {"block": values}
            yield Match(kernel.node, f"the block size of `{kernel.name}`", evidence, declared, None, choices)

    def rewrite(self, source: Source, match: Match, parameters: Mapping[str, Parameter]) -> str:
        """Only digits change."""
        declared: Declaration = match.data
        if declared.value is None:
            raise LookupError(f"{declared.name} has no value")
        numbers = str(parameters["block"]).split("x")
        text = numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"
        return source.replace(Edit(declared.value.start_byte, declared.value.end_byte, text))


def _named_block(kernel: Kernel) -> Declaration | None:
    configuration = kernel.launch.configuration
    if len(configuration) != 2 or configuration[1].type != "identifier":
        return None
    declared = declaration_of(text_of(configuration[1]), kernel.launch.node)
    if declared is None or declared.value is None or assignments_to(declared):
        return None
    return declared if _computed(configuration[0], declared, kernel) else None


def _computed(grid: Node, block: Declaration, kernel: Kernel) -> bool:
    """True when the grid's expression, or the declaration behind it, mentions the block size."""
    if block.name in identifiers(grid):
        return True
    behind = declaration_of(text_of(grid), kernel.launch.node) if grid.type == "identifier" else None
    return behind is not None and behind.value is not None and block.name in identifiers(behind.value)


def _depends_on_block(kernel: Kernel) -> bool:
    """Shared arrays and warp operations may be sized for the block as it is."""
    text = text_of(kernel.node)
    words = ("__shared__", "__shfl", "__sync", "__launch_bounds__", "warpSize", "__ballot", "cooperative_groups")
    return any(word in text for word in words) or any(of_type(kernel.node, "gnu_asm_expression"))
