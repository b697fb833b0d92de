"""A tiny C++ loop per signature, so that neither Python nor an argument unpacker stands inside the measurement.

Trusted: generated here from a parsed ``Signature`` and compiled by the judge. The loop takes the address of ``solve``
and a table of 64-bit words, one row per launch: an address for a pointer, raw bits for a scalar.
"""

import struct

from team.judge.build import Recipe
from team.tasks.signature import Parameter, Signature

LOOP = "kernelteam_loop"
_SCALARS = {"float32": "float", "float64": "double", "bool": "bool"}


def shim_recipe(signature: Signature) -> Recipe:
    """How to build the loop for one signature."""
    text = _source(signature)
    return Recipe({"shim.cpp": text}, "shim.cpp", ("-O2", "-std=c++17", "-fPIC", "-shared"))


def scalar_word(parameter: Parameter, value: float) -> int:
    """The 64 bits that carry one scalar argument."""
    if parameter.dtype == "float32":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if parameter.dtype == "float64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    return int(value) & 0xFFFF_FFFF_FFFF_FFFF


def _source(signature: Signature) -> str:
    types = [_type(parameter) for parameter in signature.parameters]
    arguments = [_argument(kind, column) for column, kind in enumerate(types)]
    return f"""\
#include <cstdint>
#include <cstring>
template <class T> static inline T bits(uint64_t word) {{
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}}
extern "C" void {LOOP}(void* entry, const uint64_t* row, uint64_t launches) {{
    auto solve = reinterpret_cast<void (*)({", ".join(types)})>(entry);
    for (uint64_t i = 0; i < launches; i++, row += {len(types)}) solve({", ".join(arguments)});
}}
"""


def _type(parameter: Parameter) -> str:
    """The C type with the same calling convention; a pointer's element type does not matter to it."""
    if parameter.pointer or parameter.is_stream:
        return "void*"
    return _SCALARS.get(parameter.dtype) or f"{parameter.dtype}_t"


def _argument(kind: str, column: int) -> str:
    if kind == "void*":
        return f"reinterpret_cast<void*>(row[{column}])"
    return f"bits<{kind}>(row[{column}])"
