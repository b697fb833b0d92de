"""Kernels with one thread an output of a matrix: two indices, a guard on both, and what the thread then does."""

from dataclasses import dataclass

from tree_sitter import Node

from roles.techniques.cpp.accesses import Access, accesses, distinct, element_type
from roles.techniques.cpp.affine import Polynomial
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.syntax import statements, text_of
from roles.techniques.cuda.launches import Kernel
from roles.techniques.cuda.threads import guard_of, index_declared, serial, uses_threads


@dataclass(frozen=True)
class Plane:
    """Two indices with their types and the parameters that bound them; ``body`` runs behind the guard."""

    kernel: Kernel
    x: str
    y: str
    type: str
    bound: dict[str, str]
    body: tuple[Node, ...]

    def matrix(self, major: str, minor: str, width: str) -> Polynomial:
        """``major * width + minor``."""
        return {tuple(sorted((major, width))): 1, (minor,): 1}

    def other(self, name: str) -> str:
        """The index that ``name`` is not."""
        return self.y if name == self.x else self.x


def plane_of(kernel: Kernel) -> Plane | None:
    """The plane that a kernel covers, or None."""
    body = statements(kernel.body)
    first, second = (index_declared(each) for each in body[:2]) if len(body) > 2 else (None, None)
    if first is None or second is None or {first[1], second[1]} != {"x", "y"} or first[0].type != second[0].type:
        return None
    guard = guard_of(body[2:])
    if guard is None or len(kernel.launch.configuration) != 2 or not volatile_free(kernel.node):
        return None
    names = {first[1]: first[0].name, second[1]: second[0].name}
    bound = {name: text_of(limit) for name, limit in guard[0].items()}
    known = set(bound) == set(names.values()) and all(kernel.is_parameter(limit) for limit in bound.values())
    rest = serial(guard[1])
    calm = all(plain(each) and not uses_threads(each) for each in rest)
    return Plane(kernel, names["x"], names["y"], first[0].type, bound, tuple(rest)) if known and calm else None


def apart(plane: Plane, found: list[Access]) -> bool:
    """True when every array is a float buffer of its own."""
    body = plane.kernel.body
    return all(distinct(each.array, body) and element_type(each.array, body) == "float" for each in found)


def all_accesses(plane: Plane) -> list[Access] | None:
    """Every access behind the guard."""
    return accesses(*plane.body)
