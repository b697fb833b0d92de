"""Loads and stores of one vector, with or without a cache hint.

``__ldg`` takes the read-only path, ``__ldcs`` and ``__stcs`` mark a line as the first to be evicted. A load hint is for
data that the kernel never writes.
"""

LOADS = ("plain", "__ldg", "__ldcs")
STORES = ("plain", "__stcs")


def loaded(load: str, kind: str, address: str) -> str:
    """The expression that loads one ``kind`` from an address of floats."""
    pointer = f"reinterpret_cast<const {kind}*>({address})" if kind != "float" else f"({address})"
    return f"*{pointer}" if load == "plain" else f"{load}({pointer.strip('()') if kind == 'float' else pointer})"


def stored(store: str, kind: str, address: str, value: str) -> str:
    """The statement that stores the ``kind`` at address ``value`` to an address of floats."""
    pointer = f"reinterpret_cast<{kind}*>({address})" if kind != "float" else f"({address})"
    what = f"*reinterpret_cast<const {kind}*>({value})" if kind != "float" else f"*({value})"
    return f"*{pointer} = {what};" if store == "plain" else f"{store}({pointer}, {what});"
