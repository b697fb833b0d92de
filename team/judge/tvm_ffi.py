"""The package apache-tvm-ffi as a kernel bound by it is built and loaded: headers and one library.

Trusted: the headers and the library are the installed package's, never the candidate's. The package is not imported
here: its module would load torch's extension and its own registry into the judge.
"""

import importlib.util
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from team.errors import UserError
from team.judge.artifact import Library
from team.judge.build import Recipe

PACKAGE = "apache-tvm-ffi"
_MODULE = "tvm_ffi"
_LIBRARY = "libtvm_ffi.so"


@dataclass(frozen=True)
class Package:
    """Where the installed package lies."""

    include: Path
    library: Path


@cache
def package() -> Package:
    """The installed package; ``UserError`` where there is none that can be built with."""
    spec = importlib.util.find_spec(_MODULE)
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for place in places:
        include, library = place / "include", place / "lib" / _LIBRARY
        if (include / "tvm" / "ffi" / "c_api.h").is_file() and library.is_file():
            return Package(include.resolve(), library.resolve())
    raise UserError(f"The package {PACKAGE} is not installed.", f"Install it: pip install {PACKAGE}")


def header_flags() -> tuple[str, ...]:
    """What a compiler needs to read a kernel that is bound by TVM-FFI."""
    return (f"-I{package().include}",)


def bound(recipe: Recipe, cuda: bool) -> Recipe:
    """The recipe with the package's headers and library; a name that nobody defines ends the build, not the runner."""
    found = package()
    linked = (*_linker("--no-as-needed", cuda), f"-L{found.library.parent}", "-ltvm_ffi")
    flags = (*header_flags(), *linked, *_linker("--as-needed", cuda), *_linker("-z,defs", cuda))
    return replace(recipe, flags=(*recipe.flags, *flags), libraries=(Library.of(found.library),))


def _linker(option: str, cuda: bool) -> tuple[str, ...]:
    """An option for the linker, by way of nvcc or g++."""
    return ("-Xlinker", option) if cuda else (f"-Wl,{option}",)
