"""What methods leave in a GPU's machine code: the one table of signatures, by method and architecture.

A signature compares the kernel with its parent's: what was there before proves nothing, and much of it looks just like
ordinary code (``HFMA2`` makes constants, ``expf`` is ``MUFU.EX2`` already). Patterns are those of
``team.evidence.sass.opcodes.matches``. Every one is proven by a probe that the tests assemble with the installed nvcc,
beside one that only looks like the method and must not pass (``tests/team/evidence/probes``).

Names are those of this team's cards and of the public "CUDA Kernel Iterative Optimizer (v3)", whose methods are listed
in section 6 of its reference. ``SILENT`` says of the others what shows them instead.
"""

from collections.abc import Mapping

from roles.techniques.signatures import (
    Arch,
    Clause,
    Denser,
    Grew,
    More,
    Signature,
    both,
    either,
    everywhere,
    grew,
    here,
    hint,
    shrank,
    since_hopper,
)

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
"""Whose table is used for which architecture; without the ``a`` it is the same machine with fewer instructions.

There is none for others: nothing was proven there.
"""

_WARP_MMA = ("HMMA", "IMMA", "DMMA")
_GROUP_MMA = ("HGMMA", "QGMMA", "IGMMA")
_TENSOR_MMA = ("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA")
_BARRIERS = ("BAR.SYNC", "BAR.RED")
_RANGE = ("FFMA.RM", "FFMA.SAT")  # the range reduction around MUFU.EX2 in expf
_FUSED, _PLAIN = ("FFMA", "DFMA"), ("FADD", "FMUL", "DADD", "DMUL")
_GLOBAL_ATOMICS = ("ATOMG", "ATOM", "RED")
_GLOBAL_ATOMICS_90 = ("ATOMG", "ATOM", "REDG")
_COPIES_80, _COPIES_90 = ("LDGSTS",), ("LDGSTS", "UBLKCP", "UTMALDG")
_COMMIT, _WAIT = ("LDGDEPBAR",), ("DEPBAR.LE",)
_HINTS = ("LDG.EF", "LDG.STRONG.GPU", "LDG.STRONG.SM", "LDG.LU", "LDG.EL", "LDG.NA",
          "STG.EF", "STG.STRONG.GPU", "STG.EL", "STG.NA")  # fmt: skip


def _aggregated(atomics: tuple[str, ...]) -> Clause:
    """Lanes find each other, and fewer of them go to memory. The compiler does so by itself for one address."""
    return both(here(*atomics), grew("MATCH", "VOTE", "REDUX"), grew("POPC", "REDUX"))


def _fewer_atomics(atomics: tuple[str, ...]) -> Clause:
    return either(shrank(*atomics), both(grew("ATOMS"), here(*atomics)))


def _emulated(product: str) -> Clause:
    """Several narrow products for a wide one: three in TF32, six in BF16."""
    return either(Grew((f"{product}.TF32",), 3), Grew((f"{product}.BF16",), 6))


def _staged(*unseen: Clause) -> Clause:
    """More groups of copies are begun than waited for: some are in flight when the loop begins."""
    return either(both(More(_COMMIT, _WAIT), either(grew(*_COMMIT), Denser(_COMMIT, _WAIT))), *unseen)


_TENSOR: Mapping[Arch, Clause] = {
    "sm_80": grew(*_WARP_MMA),
    "sm_90a": either(grew(*_WARP_MMA), grew(*_GROUP_MMA)),
    "sm_100a": either(grew(*_WARP_MMA), grew(*_TENSOR_MMA)),
    "sm_120a": grew(*_WARP_MMA, "QMMA", "OMMA"),
}

SIGNATURES: Mapping[str, Signature] = {
    # ---- compute
    "tensor_core": Signature(_TENSOR),
    "mixed_precision": everywhere(grew("F2FP.PACK_AB", "HADD2.F32")),
    "warp_specialization": since_hopper(grew("BAR.ARV", "SYNCS.ARRIVE", "USETMAXREG"), grew("BAR.ARV", "ATOMS.ARRIVE")),
    "ilp_unroll_register_tile": everywhere(Denser(_FUSED, ("LDS",), ("LDG",))),
    "gemm_softmax_interleave": Signature(
        {
            "sm_90a": both(here(*_GROUP_MMA), grew("MUFU.EX2")),
            "sm_100a": both(here(*_TENSOR_MMA), grew("MUFU.EX2")),
        }
    ),
    "two_level_accumulation_promotion": Signature({"sm_90a": both(here("QGMMA"), grew("FADD", "FFMA"))}),
    "fp8_fast_accumulation_mode": Signature({"sm_90a": grew("QGMMA"), "sm_100a": grew("UTCQMMA")}),
    "block_scaled_precision": Signature(
        {"sm_100a": either(grew("UTCOMMA"), hint("UTCQMMA")), "sm_120a": grew("QMMA.SF", "OMMA.SF")}
    ),
    "tf32_emulation_3xtf32_bf16x6": Signature(
        {
            "sm_80": _emulated("HMMA"),
            "sm_90a": either(_emulated("HMMA"), _emulated("HGMMA")),
            "sm_100a": either(_emulated("HMMA"), hint("UTCHMMA")),
            "sm_120a": _emulated("HMMA"),
        }
    ),
    "mufu_ex2_softmax_replacement": everywhere(both(here("MUFU.EX2"), shrank(*_RANGE))),
    "reduction": since_hopper(grew("SHFL", "REDUX", "REDG"), grew("SHFL", "REDUX", "RED")),
    "warp_shuffle": everywhere(grew("SHFL")),
    "fma_and_fast_math": everywhere(either(shrank("CALL"), Denser(_FUSED, _PLAIN))),
    "lop3_bit_manipulation": everywhere(both(here("LOP3"), grew("HADD2", "HFMA2"), shrank("I2F*"))),
    "structured_sparsity_2to4": Signature(
        {
            "sm_80": grew("HMMA.SP"),
            "sm_90a": either(grew("HMMA.SP"), grew("HGMMA.SP")),
            "sm_100a": either(grew("HMMA.SP"), hint("UTCHMMA", "UTCQMMA")),
            "sm_120a": grew("HMMA.SP"),
        }
    ),
    "int8_tensorcore_calibrated": Signature(
        {
            "sm_80": grew("IMMA"),
            "sm_90a": either(grew("IMMA"), grew("IGMMA")),
            "sm_100a": either(grew("IMMA"), grew("UTCIMMA")),
            "sm_120a": grew("IMMA"),
        }
    ),
    # ---- memory
    "tiling_smem": since_hopper(
        both(grew("LDS", "LDSM"), grew("STS", *_COPIES_90)), both(grew("LDS", "LDSM"), grew("STS", *_COPIES_80))
    ),
    "vectorized_access": everywhere(
        either(Denser(("LDG.128", "LDG.64"), ("LDG",)), Denser(("STG.128", "STG.64"), ("STG",)))
    ),
    "async_copy": since_hopper(grew(*_COPIES_90), grew(*_COPIES_80)),
    "multi_stage_pipeline": since_hopper(_staged(hint("UBLKCP", "UTMALDG")), _staged()),
    "ldmatrix_stmatrix": since_hopper(grew("LDSM", "STSM", "MOVM"), grew("LDSM", "MOVM")),
    "bulk_copy": since_hopper(grew("UBLKCP", "UTMALDG")),
    "tma_multicast": Signature({"sm_90a": grew("UTMALDG.MULTICAST"), "sm_100a": grew("UTMALDG.MULTICAST")}),
    "ldg_cache_modifier_hint": everywhere(grew(*_HINTS)),
    "cache_and_readonly": everywhere(grew("LDG.CONSTANT")),
    "smem_register_spilling": everywhere(shrank("LDL", "STL"), whole=True),
    "tma_im2col_implicit_conv": since_hopper(grew("UTMALDG.IM2COL")),
    "distributed_smem": since_hopper(both(here("UCGABAR_*"), grew("LD", "ST"))),
    "tensor_map_rebuild_avoid": since_hopper(grew("UTMACCTL.PF")),
    "explicit_l2_prefetch": since_hopper(grew("CCTL.PF2", "UBLKPF", "UTMAPF"), grew("CCTL.PF2")),
    # ---- latency
    "async_pipeline": since_hopper(grew(*_COPIES_90), grew(*_COPIES_80)),
    "reduce_sync_count": everywhere(shrank(*_BARRIERS), whole=True),
    "warp_shuffle_sync": everywhere(both(grew("SHFL"), shrank(*_BARRIERS))),
    "warp_aggregated_atomics": since_hopper(_aggregated(_GLOBAL_ATOMICS_90), _aggregated(_GLOBAL_ATOMICS)),
    "asymmetric_mbarrier_sync": since_hopper(
        both(grew("SYNCS.ARRIVE"), grew("SYNCS.PHASECHK")), grew("ATOMS.ARRIVE.64")
    ),
    "pingpong_warpgroup_schedule": Signature(
        {"sm_90a": both(here(*_GROUP_MMA), here("BAR.SYNC"), here("USETMAXREG"), grew("BAR.ARV"))}
    ),
    "producer_regdealloc_setmaxnreg": since_hopper(both(grew("USETMAXREG.DEALLOC"), grew("USETMAXREG.TRY_ALLOC"))),
    "intra_wg_gemm_softmax_pipeline": Signature(
        {"sm_90a": both(here(*_GROUP_MMA), here("WARPGROUP.DEPBAR"), grew("MUFU.EX2"))}
    ),
    "pdl_overlap": since_hopper(grew("ACQBULK", "PREEXIT")),
    "cooperative_cluster": since_hopper(grew("UCGABAR_ARV", "UCGABAR_WAIT")),
    "cluster_launch_control_scheduler": Signature({"sm_100a": grew("UGETNEXTWORKID")}),
    "atomic_optimize": since_hopper(_fewer_atomics(_GLOBAL_ATOMICS_90), _fewer_atomics(_GLOBAL_ATOMICS)),
}

CARDS: Mapping[str, str] = {
    "matmul_tensor": "tensor_core",
    "triton_split_dot": "tensor_core",
    "tensor_cores": "tensor_core",
    "mixed_parts": "mixed_precision",
    "matmul_tile": "ilp_unroll_register_tile",
    "transpose_tile": "tiling_smem",
    "async_staging": "multi_stage_pipeline",
    "async_copy_pipeline": "multi_stage_pipeline",
    "wide_staging": "vectorized_access",
    "shifted_rows": "vectorized_access",
    "wide_loads": "vectorized_access",
    "vectorise_elements": "vectorized_access",
    "shuffle_tree": "warp_shuffle_sync",
    "shuffle_reduction": "warp_shuffle_sync",
    "read_only_loads": "cache_and_readonly",
    "read_only_loads_edit": "cache_and_readonly",
    "streaming_hints": "ldg_cache_modifier_hint",
    "triton_eviction_hints": "ldg_cache_modifier_hint",
    "base2_exponential": "mufu_ex2_softmax_replacement",
    "warp_specialisation": "warp_specialization",
}
"""Cards of this team by the method whose signature shows them."""

_LAUNCH = "the launch shows it: grid, block, shared memory, number of kernels"
_TIME = "only metrics and times show it"
_PTXAS = "the assembler's report shows it: registers, spills"
_HOST = "the host's calls show it"

SILENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("launch_config", "kernel_fusion", "split_k_parallel_reduce", "stream_k_load_balancing", "persistent_kernel",
         "grouped_gemm_scheduler", "moe_grouped_gemm", "attention_decode_persistent_schedule", "rows_per_block",
         "split_k", "split_depth", "smaller_blocks", "kernel_split", "block_size", "grid_stride", "persistent_grid",
         "size_dispatch", "shape_dispatch", "row_groups", "triton_launch", "triton_whole_rows",
         "triton_length_warps", "triton_persistent_rows", "triton_size_dispatch", "dynamic_shared"),
        _LAUNCH,
    ),
    **dict.fromkeys(
        ("thread_coarsening", "overlap_compute_memory", "loop_unroll", "pragma_no_alias", "strength_reduce",
         "branch_eliminate", "handwritten_ptx_inline", "welford_or_rmsnorm", "block_sparse_tensorcore",
         "coalesced_access", "epilogue_fusion", "bank_conflict", "tma_descriptor_tuning",
         "epilogue_visitor_tree_fusion", "data_layout", "kv_cache_layout", "layout_transform_fusion",
         "dequant_matmul_fusion", "tile_scheduler_swizzle", "online_recomputation", "coalesce", "shared_swizzle",
         "block_order", "recompute", "fused_epilogue", "online_softmax_gpu", "software_pipeline", "bank_layout",
         "block_swizzle", "unroll_depth", "cuda_knobs", "cuda_restrict", "restrict", "cuda_unroll", "cuda_store_once",
         "cuda_hoist_reciprocal", "cuda_hoist_call", "triton_grouped_programs"),
        _TIME,
    ),
    **dict.fromkeys(
        ("register_pressure", "launch_bounds", "launch_bounds_edit", "residency", "register_cache"),
        _PTXAS,
    ),
    **dict.fromkeys(
        ("l2_persistence_window", "static_launch_grid_graph", "cuda_graphs", "stream_event",
         "independent_kernel_overlap"),
        _HOST,
    ),
}  # fmt: skip
"""Methods that leave nothing of their own in the machine code, and what shows them instead."""
