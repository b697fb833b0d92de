"""Names that are free in C++, CUDA and Triton alike."""

import keyword
import re
from collections.abc import Collection

_TAKEN = frozenset(
    word
    for line in (
        "at live total solve stream next torch triton tl run_kernel BLOCK seed float int double char bool short long",
        "signed unsigned const static void auto register extern inline struct class union enum template typename",
        "operator new delete this default case switch goto do while for if else return break continue volatile sizeof",
        "namespace using public private protected virtual friend try catch throw and or not xor true false nullptr",
        "restrict half range abs min max",
    )
    for word in line.split()
)


def free(name: str) -> bool:
    """Whether a variable may have this name; index variables are ``i0``, ``r0`` and so on."""
    return name not in _TAKEN and not keyword.iskeyword(name) and not re.fullmatch(r"[ir]\d+", name)


def safe_name(wish: str, taken: Collection[str]) -> str:
    """``wish`` as a name that is free and not taken."""
    name = re.sub(r"\W", "_", wish).strip("_") or "value"
    name = f"v{name}" if name[0].isdigit() else name
    name = name if free(name) else f"{name}_"
    number, wished = 1, name
    while name in taken:
        number += 1
        name = f"{wished}{number}"
    return name
