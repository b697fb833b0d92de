"""What methods leave in a GPU's machine code: the one table of signatures, by method and architecture.

A signature compares the kernel with its parent's: what was there before proves nothing, and much of it looks just like
ordinary code (``HFMA2`` makes constants, ``expf`` is ``MUFU.EX2`` already). Patterns are those of
``team.evidence.sass.opcodes.matches``. Every one is proven by a probe that the tests assemble with the installed nvcc,
beside one that only looks like the method and must not pass (``tests/team/evidence/probes``).

Names are those of this team's cards and of the public "CUDA Kernel Iterative Optimizer (v3)", whose methods are listed
in section 6 of its reference. ``SILENT`` says of the others what shows them instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Arch = Literal["sm_80", "sm_90a", "sm_100a", "sm_120a"]
FAMILY: Mapping[str, Arch] = {
    "sm_80": "sm_80",
    "sm_86": "sm_80",
    "sm_89": "sm_80",
    "sm_90": "sm_90a",
    "sm_90a": "sm_90a",
    "sm_100": "sm_100a",
    "sm_100a": "sm_100a",
    "sm_120": "sm_120a",
    "sm_120a": "sm_120a",
}
"""Whose table is used for which architecture. There is none for others: nothing was proven there."""


@dataclass(frozen=True)
class Grew:
    """More instructions of these kinds than before, and at least ``least``."""

    kinds: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True)
class Shrank:
    """Fewer instructions of these kinds than before."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Here:
    """At least ``least`` instructions of these kinds, whatever was there before: said beside something that grew."""

    kinds: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True)
class Denser:
    """More of ``part`` for each of ``whole`` than before, by at least ``factor``. Unrolling does not change it.

    ``otherwise`` takes the place of ``whole`` where neither kernel has any of that.
    """

    part: tuple[str, ...]
    whole: tuple[str, ...]
    otherwise: tuple[str, ...] = ()
    factor: float = 1.1


@dataclass(frozen=True)
class AllOf:
    """Every clause holds, in the same kernel."""

    clauses: tuple["Clause", ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one clause holds."""

    clauses: tuple["Clause", ...]


Clause = Grew | Shrank | Here | Denser | AllOf | AnyOf


@dataclass(frozen=True)
class Signature:
    """What shows a method, by architecture. ``whole``: all functions of a module count together, else one of them
    must show it."""

    clauses: Mapping[Arch, Clause]
    whole: bool = False


def grew(*kinds: str, least: int = 1) -> Grew:
    """See ``Grew``."""
    return Grew(kinds, least)


def shrank(*kinds: str) -> Shrank:
    """See ``Shrank``."""
    return Shrank(kinds)


def here(*kinds: str) -> Here:
    """See ``Here``."""
    return Here(kinds)


def both(*clauses: Clause) -> AllOf:
    """See ``AllOf``."""
    return AllOf(clauses)


def either(*clauses: Clause) -> AnyOf:
    """See ``AnyOf``."""
    return AnyOf(clauses)


def everywhere(clause: Clause, whole: bool = False) -> Signature:
    """The same on all architectures of the table."""
    return Signature(dict.fromkeys(("sm_80", "sm_90a", "sm_100a", "sm_120a"), clause), whole)


_LOADS, _STORES = ("LDG",), ("STG",)
_WIDE_LOADS, _WIDE_STORES = ("LDG.128", "LDG.64"), ("STG.128", "STG.64")
_BARRIERS = ("BAR.SYNC", "BAR.RED")
_RANGE = ("FFMA.RM", "FFMA.SAT")  # the range reduction around MUFU.EX2 in expf
_GLOBAL_ATOMICS = ("ATOMG", "ATOM", "RED", "REDG")

_WIDE = either(Denser(_WIDE_LOADS, _LOADS), Denser(_WIDE_STORES, _STORES))

SIGNATURES: Mapping[str, Signature] = {
    "ilp_unroll_register_tile": everywhere(Denser(("FFMA", "DFMA"), ("LDS",), ("LDG",))),
    "mufu_ex2_softmax_replacement": everywhere(both(here("MUFU.EX2"), shrank(*_RANGE))),
    "reduction": everywhere(grew("SHFL", "REDUX", "RED", "REDG")),
    "warp_shuffle": everywhere(grew("SHFL")),
    "fma_and_fast_math": everywhere(either(shrank("CALL"), Denser(("FFMA", "DFMA"), ("FADD", "FMUL", "DADD", "DMUL")))),
    "tiling_smem": everywhere(both(grew("LDS", "LDSM"), grew("STS", "LDGSTS", "UBLKCP", "UTMALDG"))),
    "vectorized_access": everywhere(_WIDE),
    "ldg_cache_modifier_hint": everywhere(
        grew("LDG.EF", "LDG.STRONG.GPU", "LDG.STRONG.SM", "LDG.LU", "LDG.EL", "STG.EF", "STG.STRONG.GPU", "STG.EL")
    ),
    "cache_and_readonly": everywhere(grew("LDG.CONSTANT")),
    "smem_register_spilling": everywhere(shrank("LDL", "STL"), whole=True),
    "explicit_l2_prefetch": everywhere(grew("CCTL.PF2", "CCTL.PF1.5", "UBLKPF", "UTMAPF")),
    "reduce_sync_count": everywhere(shrank(*_BARRIERS), whole=True),
    "warp_shuffle_sync": everywhere(both(grew("SHFL"), shrank(*_BARRIERS))),
    "warp_aggregated_atomics": everywhere(
        both(here(*_GLOBAL_ATOMICS), grew("MATCH", "VOTE", "VOTEU", "REDUX"), grew("POPC", "UPOPC", "REDUX"))
    ),
    "atomic_optimize": everywhere(either(shrank(*_GLOBAL_ATOMICS), both(grew("ATOMS"), here(*_GLOBAL_ATOMICS)))),
}

CARDS: Mapping[str, str] = {
    "wide_staging": "vectorized_access",
    "wide_loads": "vectorized_access",
    "vectorise_elements": "vectorized_access",
    "shuffle_tree": "warp_shuffle_sync",
    "shuffle_reduction": "warp_shuffle_sync",
    "read_only_loads": "cache_and_readonly",
    "read_only_loads_edit": "cache_and_readonly",
    "streaming_hints": "ldg_cache_modifier_hint",
    "base2_exponential": "mufu_ex2_softmax_replacement",
}
"""Cards of this team by the method whose signature shows them."""

SILENT: Mapping[str, str] = {}
"""Methods that leave nothing of their own in the machine code, and what shows them instead."""
