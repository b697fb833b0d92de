"""The parameter list of a rewritten kernel."""

from roles.techniques.cuda.launches import Kernel, lent


def restricted(kernel: Kernel) -> str:
    """The parameters with ``__restrict__`` on the pointers of a kernel to which ``solve`` passes different buffers."""
    if not lent(kernel.node):
        return kernel.parameter_text
    pointers = {each.name for each in kernel.parameters if each.pointer and not each.array and not each.restrict}
    parts = kernel.parameter_text.strip("()").split(",")
    return "(" + ",".join(_qualified(part, pointers) for part in parts) + ")"


def _qualified(part: str, pointers: set[str]) -> str:
    name = part.split("*")[-1].strip()
    return part[: part.rindex(name)].rstrip() + " __restrict__ " + name if "*" in part and name in pointers else part
