"""Transforms of serial code that hold inside a kernel as they are: what one thread does is C++."""

from typing import ClassVar

from roles.techniques.cpp.hoist import HoistCall, HoistReciprocal
from roles.techniques.cpp.store_once import StoreOnce
from roles.techniques.cpp.syntax import Grammar


class CudaStoreOnce(StoreOnce):
    """Keep an expensive value in the output instead of computing it again."""

    grammar: ClassVar[Grammar] = "cuda"


class CudaHoistReciprocal(HoistReciprocal):
    """One division before the loop instead of one for every element."""

    grammar: ClassVar[Grammar] = "cuda"


class CudaHoistCall(HoistCall):
    """An invariant call is made once."""

    grammar: ClassVar[Grammar] = "cuda"
