"""Which tile a product takes: by the share of the output that the busiest multiprocessor gets with each of three."""

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.messages import Parameter
from roles.techniques.cpp.render import nest
from roles.techniques.cuda.matmul_launch import Launching
from roles.techniques.cuda.shared_memory import dynamic

SMALL: Mapping[str, Parameter] = {"bm": 64, "bn": 64, "wm": 32, "wn": 32, "blocks": 3}
MEDIUM: Mapping[str, Parameter] = {"bm": 96, "bn": 128, "wm": 48, "wn": 32, "blocks": 1}
RESERVED = frozenset(["share_of", "large_share", "medium_share", "small_share", "tall", "wide"])
_SIZES = ("bm", "bn", "wm", "wn")
_COSTS = {"large": 16, "medium": 17, "small": 18}  # of an element: a smaller tile shares its operands less


def others(setting: Mapping[str, Parameter]) -> Mapping[str, Mapping[str, Parameter]]:
    """The tiles beside the design's own; tiles of fixed size have no room for the medium one."""
    if not int(setting["small"]):
        return {}
    return {"medium": MEDIUM, "small": SMALL} if dynamic(setting) else {"small": SMALL}


@dataclass(frozen=True)
class ChoosingLaunching(Launching):
    """Lets the host choose where ``small`` says how many multiprocessors there are."""

    def blocks(self) -> str:
        """How many blocks of an instance a multiprocessor is to hold, in the kernel's own constants."""
        text = f"{self.name}_blocks"
        for each in others(self.setting).values():
            text = f"BM == {each['bm']} && BN == {each['bn']} ? {each['blocks']} : {text}"
        return text

    def host(self) -> list[str]:
        """See ``Launching``."""
        tiles = others(self.setting)
        if not tiles:
            return super().host()
        kernel, plane = self.product.plane.kernel, self.product.plane
        down, across = (kernel.argument_of(plane.bound[each]) for each in (self.product.row, self.product.col))
        sizes = {"large": [f"{self.name}_{each}" for each in _SIZES]}
        sizes |= {called: [str(tile[each]) for each in _SIZES] for called, tile in tiles.items()}
        count = f"(({down} - 1) / tall + 1) * (({across} - 1) / wide + 1)"
        body = [
            "// The share of the output of the busiest multiprocessor; elements of smaller tiles cost more.",
            "const auto share_of = [&](size_t tall, size_t wide) {",
            f"{self.unit}return (({count} - 1) / {self.name}_small + 1) * tall * wide;",
            "};",
            *(
                f"const size_t {each}_share = share_of({at[0]}, {at[1]}) * {_COSTS[each]};"
                for each, at in sizes.items()
            ),
        ]
        called = list(sizes)
        for place, each in enumerate(called):
            least = " && ".join(f"{each}_share <= {smaller}_share" for smaller in called[place + 1 :])
            opening = f"{'} else ' if place else ''}{f'if ({least})' if least else ''}".rstrip()
            body = [*body, *nest(opening, self.by_alignment(sizes[each]), self.unit)[:-1]]
        body = [*body, "}"]
        return nest(f"if ({down} > 0 && {across} > 0)", body, self.unit)
