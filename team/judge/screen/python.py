"""The screen of a Python candidate: what it imports and reaches, by its syntax tree alone. Nothing of it runs here.

The list is of what is allowed: Triton's language, allocation of tensors, arithmetic of the standard library. Text that
does not parse passes; loading it will fail on its own account.
"""

import ast
import re
from collections.abc import Collection, Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MODULES = frozenset({"triton", "torch", "math", "typing", "functools", "itertools", "dataclasses", "__future__"})
_TRITON = (
    "triton.language",
    "triton.tools.tensor_descriptor",
    "triton.experimental.gluon",
)  # everything below these is allowed, of the rest of triton what is named here:
_TRITON_NAMES = frozenset(
    f"triton.{name}"
    for name in (
        *("jit", "autotune", "heuristics", "Config", "cdiv", "next_power_of_2", "constexpr_function", "set_allocator"),
        *("reinterpret", "runtime.driver.active.utils.get_device_properties"),
    )
)
_DTYPES = (
    *("float16", "float32", "float64", "bfloat16", "half", "float", "double", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "int", "long", "float8_e4m3fn", "float8_e5m2"),
)
_TORCH_NAMES = frozenset(
    f"torch.{name}"
    for name in (
        *_DTYPES,
        *("empty", "empty_like", "empty_strided", "zeros", "zeros_like", "full", "full_like", "Tensor", "Size"),
        *("device", "dtype", "contiguous_format", "strided", "finfo", "iinfo", "no_grad", "inference_mode"),
        *("cuda.current_stream", "cuda.current_device", "cuda.get_device_properties", "cuda.get_device_capability"),
        *("cuda.device", "cuda.stream", "Generator"),
    )
)
_BUILTINS = _words(
    """exec eval compile open getattr setattr delattr globals locals vars dir breakpoint help exit quit memoryview
    __import__ __builtins__ __loader__ __spec__ __file__ __build_class__"""
)
_INNARDS = _words(
    """builtins os sys subprocess importlib ctypes inspect gc socket threading multiprocessing signal time io pathlib
    shutil tempfile pickle marshal mmap types _C ops _inductor _dynamo cpp_extension f_back f_globals f_locals
    f_builtins f_code gi_frame cr_frame ag_frame tb_frame tb_next gi_code co_code mro modules"""
)
_COMPUTES = _words(
    """matmul mm bmm mv addmm addmm_ baddbmm addbmm addmv einsum dot vdot inner outer tensordot sum nansum mean prod std
    var max min amax amin aminmax argmax argmin median mode softmax log_softmax logsumexp exp exp_ exp2 exp2_ expm1 log
    log_ log2 log10 log1p sqrt sqrt_ rsqrt rsqrt_ sin sin_ cos cos_ tan tanh tanh_ sigmoid sigmoid_ relu relu_ gelu silu
    erf erfc erfinv pow pow_ mul mul_ multiply multiply_ add add_ addcmul addcmul_ addcdiv addcdiv_ sub sub_ subtract
    div div_ divide true_divide floor_divide remainder fmod copy_ clone cumsum cumsum_ cumprod cummax cummin
    logcumsumexp sort argsort topk kthvalue norm renorm abs abs_ neg neg_ reciprocal reciprocal_ sign where masked_fill
    masked_fill_ masked_scatter masked_select scatter scatter_ scatter_add scatter_add_ scatter_reduce gather
    index_select index_add index_add_ index_copy_ index_put index_put_ take take_along_dim clamp clamp_ clip clip_ round
    floor ceil trunc lerp lerp_ hypot atan2 conv1d conv2d conv3d layer_norm rms_norm batch_norm group_norm cross_entropy
    scaled_dot_product_attention linear bincount histc unique cdist cholesky inverse det svd qr roll flip rot90 repeat
    repeat_interleave tile tril triu diag trace eq ne lt le gt ge logical_and logical_or logical_not logical_xor
    bitwise_and bitwise_or bitwise_xor isnan isinf isfinite allclose equal any all map_ apply_ float half double
    bfloat16 backward cpu numpy tolist item pin_memory share_memory_ register_hook untyped_storage storage set_"""
)
_METHODS = frozenset({"__init__", "__call__", "__post_init__", "__len__", "__getitem__", "__iter__"})
_DUNDER = re.compile(r"__\w+__\Z")
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)


def screen_python(text: str, allowed: Collection[str] = ()) -> str:
    """One clause, with the line, about the first thing that no kernel needs; empty when there is none.

    ``allowed`` names further modules whose every attribute may be used: ``torch`` where a task allows libraries.
    """
    cookie = _COOKIE.match("\n".join(text.splitlines()[:2]))
    if cookie and cookie.group(1).lower().replace("_", "-") not in ("utf-8", "utf8", "ascii", "us-ascii"):
        return f"line 1 declares the encoding {cookie.group(1)}"
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return next(iter(sorted(_Reader(frozenset(allowed)).findings(tree))), (0, ""))[1]


class _Reader:
    """Walks one module. A name bound by an import stands for what it was imported from."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        self._bound: dict[str, str] = {}

    def findings(self, tree: ast.Module) -> Iterator[tuple[int, str]]:
        """Line and clause of everything that is refused."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for clause in self._import(node):
                    yield node.lineno, f"line {node.lineno} {clause}"
        yield from ((line, f"line {line} {clause}") for line, clause in self._body(tree, in_kernel=False))

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
            yield "imports a module beside the kernel's own"
            return
        for alias in node.names:
            path = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
            bound = alias.asname or (path.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            self._bound[bound] = path if alias.asname or isinstance(node, ast.ImportFrom) else bound
            if alias.name == "*":
                yield f"imports everything of {node.module if isinstance(node, ast.ImportFrom) else path}"
            elif not self._may_import(path, isinstance(node, ast.Import)):
                yield f"imports {path}"

    def _may_import(self, path: str, module: bool) -> bool:
        root = path.split(".")[0]
        if self._is_allowed(path):
            return True
        if root not in _MODULES:
            return False
        return path == root or self._may_reach(path) or (module and any(name.startswith(path) for name in _TRITON))

    def _body(self, node: ast.AST, in_kernel: bool) -> Iterator[tuple[int, str]]:
        """Everything under ``node``, each attribute chain once and as a whole."""
        for child in ast.iter_child_nodes(node):
            line = getattr(child, "lineno", getattr(node, "lineno", 1))
            inside = in_kernel or (isinstance(child, ast.FunctionDef) and self._is_kernel(child))
            for clause in self._clauses(child, inside):
                yield line, clause
            if isinstance(child, ast.Attribute):
                base: ast.AST = child
                while isinstance(base, ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name):
                    continue
            yield from self._body(child, inside)

    def _clauses(self, node: ast.AST, in_kernel: bool) -> Iterator[str]:
        match node:
            case ast.Attribute():
                yield from self._attribute(node, in_kernel)
            case ast.Name(id=name):
                yield from self._name(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if _DUNDER.match(name):
                if name not in _METHODS:
                    yield f"defines {name}"
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()) if not in_kernel:
                if not self._is_allowed("torch"):
                    yield "multiplies matrices outside a kernel"
            case ast.keyword(arg="metaclass"):
                yield "uses a metaclass"
            case _:
                pass

    def _name(self, name: str) -> Iterator[str]:
        if name in _BUILTINS or (_DUNDER.match(name) and name != "__name__"):
            yield f"uses {name}"
        elif self._bound.get(name) == "torch" and not self._is_allowed("torch"):
            yield "passes the module torch about"

    def _attribute(self, node: ast.Attribute, in_kernel: bool) -> Iterator[str]:
        """One chain ``base.a.b``: refused parts first, then what a module's name may reach, then tensors' methods."""
        parts: list[str] = []
        base: ast.AST = node
        while isinstance(base, ast.Attribute):
            parts.insert(0, base.attr)
            base = base.value
        module = self._bound.get(base.id) if isinstance(base, ast.Name) else None
        path = ".".join([module or getattr(base, "id", "..."), *parts])
        if isinstance(base, ast.Name) and module is None:
            yield from self._name(base.id)
        if module is not None and self._may_reach(path) and path in _TRITON_NAMES:
            return
        for part in parts:
            if _DUNDER.match(part) or part in _INNARDS or part in _BUILTINS:
                yield f"reaches for {path}"
                return
        if module is not None and self._root(module) and not self._may_reach(path):
            yield f"uses {path}"
        elif module is None and not in_kernel and parts[-1] in _COMPUTES and not self._is_allowed("torch"):
            yield f"computes with the library's {parts[-1]} outside a kernel"

    def _root(self, module: str) -> bool:
        return module.split(".")[0] in ("torch", "triton")

    def _may_reach(self, path: str) -> bool:
        if self._is_allowed(path):
            return True
        root = path.split(".")[0]
        if root == "torch":
            return any(path == name or path.startswith(f"{name}.") for name in _TORCH_NAMES)
        if root == "triton":
            below = any(path == name or path.startswith(f"{name}.") for name in _TRITON)
            return below or any(path == name or path.startswith(f"{name}.") for name in _TRITON_NAMES)
        return True

    def _is_allowed(self, path: str) -> bool:
        return any(path == name or path.startswith(f"{name}.") for name in self._allowed)

    def _is_kernel(self, node: ast.FunctionDef) -> bool:
        """Whether a function is compiled for the device: it is decorated with ``triton.jit`` or gluon's."""
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = ast.unparse(call)
            first, _, rest = name.partition(".")
            path = f"{self._bound.get(first, first)}{'.' if rest else ''}{rest}"
            if path in ("triton.jit", "triton.constexpr_function") or path.startswith("triton.experimental.gluon"):
                return True
        return False
