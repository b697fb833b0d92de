"""A solution in C++ or CUDA, bound by TVM-FFI, as a task's files: its own sources, and a ``solve`` that calls them.

The sources stay as they are, so that what is exported is again a solution that the package builds. ``solve`` stands in
a file beside them that no experiment may change: it makes tensors of the lent buffers and calls the entry point, in the
runner. Text in, text out: nothing is compiled or loaded here.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from team.errors import UserError
from team.tasks.formats.flashinfer.schema import Definition, Solution, TensorSpec

LANGUAGES = ("cpp", "cuda")
HEADER = "kernelteam_ffi.h"
SOLUTION = "solution.json"  # of such a task: the solution's metadata, all but its sources
_UNITS = (".cu", ".cpp", ".cc", ".cxx", ".c")  # what the package compiles; the rest is included
_PATH = re.compile(r"[\w.+-]+(/[\w.+-]+)*\.(cuh?|cpp|cc|cxx|c|h|hpp)", re.ASCII)
_EXPORTS = "TVM_FFI_DLL_EXPORT"

# dtype -> element type in C, and code and bits of a tensor's type in TVM-FFI
_TYPES = {
    "float32": ("float", "kDLFloat", 32),
    "float16": ("__half", "kDLFloat", 16),
    "bfloat16": ("__nv_bfloat16", "kDLBfloat", 16),
    "float8_e4m3fn": ("__nv_fp8_e4m3", "kDLFloat8_e4m3fn", 8),
    "float8_e5m2": ("__nv_fp8_e5m2", "kDLFloat8_e5m2", 8),
    "int64": ("int64_t", "kDLInt", 64),
    "int32": ("int32_t", "kDLInt", 32),
    "int16": ("int16_t", "kDLInt", 16),
    "int8": ("int8_t", "kDLInt", 8),
    "bool": ("bool", "kDLBool", 8),
}
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long mutable namespace new noexcept not nullptr operator or private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    call solve stream""",
    )
)


@dataclass(frozen=True)
class Bound:
    """A solution's files as a task has them."""

    device: Literal["cpu", "cuda"]
    source: str
    editable: tuple[str, ...]
    files: dict[str, str]


def is_bound(solution: Solution) -> bool:
    """Whether a solution is written in C++ or CUDA."""
    return solution.spec.language in LANGUAGES


def bound_files(definition: Definition, solution: Solution) -> Bound:
    """The files of a solution in C++ or CUDA; ``UserError`` where the judge cannot call it."""
    if solution.spec.binding == "torch":
        raise UserError(
            f"Solution {solution.name} is bound to torch, which the judge's runner, a program without Python, cannot "
            f"hold.",
            "Export its entry point with TVM_FFI_DLL_EXPORT_TYPED_FUNC, and leave 'binding' out.",
        )
    texts = {source.path: source.content for source in solution.sources}
    if strange := next((path for path in texts if not _PATH.fullmatch(path)), ""):
        raise UserError(f"Solution {solution.name} has a source {strange!r}, which is none in C++.", "Leave it out.")
    if not any(_EXPORTS in text or f"__tvm_ffi_{solution.entry_symbol}" in text for text in texts.values()):
        raise UserError(
            f"Solution {solution.name} exports nothing by TVM-FFI.",
            f"Add to {solution.entry_file}: {_EXPORTS}_TYPED_FUNC({solution.entry_symbol}, the function);",
        )
    cuda = solution.spec.language == "cuda" or "cpu" not in solution.spec.target_hardware
    source = f"kernelteam_solve.{'cu' if cuda else 'cpp'}"
    told = solution.model_dump(mode="json", exclude={"sources"})
    ours = {
        source: _solve(definition, solution, cuda),
        HEADER: (Path(__file__).parent / HEADER).read_text(),
        SOLUTION: json.dumps(told, indent=2) + "\n",
    }
    if taken := sorted(ours.keys() & texts.keys()):
        raise UserError(f"Solution {solution.name} has a source named {taken[0]}, as the task has.", "Rename it.")
    return Bound("cuda" if cuda else "cpu", source, tuple(texts), {**texts, **ours})


def _solve(definition: Definition, solution: Solution, cuda: bool) -> str:
    """The text that calls the entry point: buffers first, then numbers and those axes that vary."""
    _refuse_names(definition)
    entry, called = f"__tvm_ffi_{solution.entry_symbol}", [f"    kernelteam::Call call{'(stream)' if cuda else ''};"]
    for name, spec in definition.inputs.items():
        called += [f"    call.number({name});" if spec.shape is None else _lent(definition, "input", name, spec)]
    called += [_lent(definition, "output", name, spec) for name, spec in definition.outputs.items()]
    called += [f"    call.{'in_place' if solution.spec.destination_passing_style else 'returning'}({entry});"]
    paths = sorted(source.path for source in solution.sources)
    units = [path for path in paths if PurePosixPath(path).suffix in _UNITS]
    lines = [
        f"// How the judge calls the FlashInfer-Trace solution {_plain(solution.name)}. Not to be edited: what may be",
        "// edited is included below.",
        f'#include "{HEADER}"',
        "",
        f'extern "C" TVM_FFI_DLL_EXPORT int {entry}(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);',
        "",
        'extern "C" void solve(',
        ",\n".join(f"    {one}" for one in _parameters(definition, cuda)),
        ") {",
        *called,
        "}",
        "",
        *(f'#include "{path}"' for path in units),
    ]
    return "\n".join([*lines, ""])


def _parameters(definition: Definition, cuda: bool) -> list[str]:
    found = [f"const {_type(name, spec)}* {name}" for name, spec in definition.tensors.items()]
    found += [f"{_type(name, spec)}* {name}" for name, spec in definition.outputs.items()]
    for name, spec in definition.scalars.items():
        found += [f"{'bool' if spec.dtype == 'bool' else 'int64_t' if 'int' in spec.dtype else 'double'} {name}"]
    found += [f"int64_t {name}" for name in definition.variables]
    return [*found, *(["cudaStream_t stream"] if cuda else [])]


def _lent(definition: Definition, role: str, name: str, spec: TensorSpec) -> str:
    _, code, bits = _TYPES[spec.dtype]
    extents = ", ".join(str(definition.constants.get(axis, axis)) for axis in spec.shape or ())
    return f"    call.{role}({name}, {{{extents}}}, DLDataType{{{code}, {bits}, 1}});"


def _type(name: str, spec: TensorSpec) -> str:
    if spec.dtype not in _TYPES:
        raise UserError(f"'{name}' is of {spec.dtype}, which no kernel in C++ can be lent.", "Take another definition.")
    return _TYPES[spec.dtype][0]


def _refuse_names(definition: Definition) -> None:
    """Refuse names that C++ cannot call a parameter by: the judge knows each by its name."""
    names = [*definition.inputs, *definition.outputs, *definition.variables]
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name in _RESERVED or names.count(name) > 1:
            raise UserError(f"No parameter in C++ can be called '{name}'.", f"Rename it in {definition.name}.")


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name)
