"""Loops whose iterations do not depend on each other: every store is the iteration's own."""

from roles.techniques.cpp.accesses import Access, accesses, distinct
from roles.techniques.cpp.affine import stride
from roles.techniques.cpp.effects import plain, volatile_free
from roles.techniques.cpp.loops import Loop
from roles.techniques.cpp.scopes import declarations, written_names
from roles.techniques.cpp.syntax import of_type, text_of


def independent_iterations(loop: Loop) -> bool:
    """True when the loop only stores to elements of its own iteration and carries no scalar."""
    if not plain(loop.body) or not volatile_free(loop.body):
        return False
    found = accesses(loop.body)
    if found is None or not any(each.write for each in found):
        return False
    own = {each.name for one in of_type(loop.body, "declaration") for each in declarations(one)}
    stores = {text_of(each.node) for each in found if each.write}
    return written_names(loop.body) <= own | stores and _apart(found, loop)


def _apart(found: list[Access], loop: Loop) -> bool:
    written = {each.array for each in found if each.write}
    touched = [each for each in found if each.array in written]
    if any(each.index is None or not stride(each.index, loop.variable) for each in touched):
        return False
    same = all(each.index == other.index for each in touched for other in touched if each.array == other.array)
    return same and all(distinct(each.array, loop.node) for each in found)
