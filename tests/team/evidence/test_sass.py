"""Opcodes from a disassembly, clauses between two counts, and every way in which nothing can be told."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probing import HAVE_TOOLS

from roles.techniques.catalog import all_cards
from roles.techniques.machine_code import CARDS, SIGNATURES, SILENT
from roles.techniques.signatures import Denser, Hint, More, both, either, grew, here, shrank
from team.evidence.sass import (
    Function,
    MachineCode,
    Status,
    check_method,
    count,
    disassemble,
    functions_in,
    matches,
    verify,
)
from team.evidence.sass.checks import counterparts
from team.evidence.sass.clauses import every, holds, some
from team.evidence.sass.disassembly import Undisassembled

FACTS = {"multiprocessor_count": 132, "max_shared_mem": 232448}
CUOBJDUMP = """
Fatbin elf code:
================
arch = sm_90a
code version = [1,8]
host = linux
compile_size = 64bit

\tcode for sm_90a
\t.target\tsm_90a

\t\tFunction : _Z13SHFL_RED_HMMAPKfPf
\t.headerflags\t@"EF_CUDA_ACCELERATORS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;              /* 0x00000a00ff017b82 */
                                                                       /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;   /* 0x0000000000007919 */
        /*0020*/             @!UP1 UIADD3 UR4, UR4, 0x1, URZ ;         /* 0x0000000000007919 */
        /*0030*/              @UPT UBLKCP.S.G [UR8], [UR4], UR6 ;      /* HMMA SHFL RED */
        /*0040*/               @P3 BRA `(.L_x_HMMA) ;                  /* 0x000fea0003800000 */
        /*0050*/                   NOP;                                /* 0x0000000000007918 */
\t\t..........

\t\tFunction : other
        /*0000*/                   HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT ;  /* 0x0 */
"""
NVDISASM = """\
\t.target\tsm_80
//--------------------- .nv.info.SHFL              --------------------------
\t.section\t.nv.info.SHFL,"",@"SHT_CUDA_INFO"
        /*0000*/ \t.byte\t0x04, 0x2f
\t.section\t.text.SHFL,"ax",@progbits
SHFL:
.text.SHFL:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/              @!PT LDS.RZ RZ, [RZ] ;
        /*0020*/                   EXIT ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
"""


def test_only_the_opcode_column_counts() -> None:
    code = functions_in(CUOBJDUMP)
    assert code.arch == "sm_90a"
    first, second = code.functions
    assert first.opcodes == {"LDC": 1, "LDG.E.128.CONSTANT": 1, "UIADD3": 1, "UBLKCP.S.G": 1, "BRA": 1}
    assert (first.plain_name, second.name) == ("SHFL_RED_HMMA", "other")
    assert second.opcodes == {"HGMMA.64x8x16.F32": 1}
    assert count(code.opcodes, ("SHFL", "RED", "HMMA")) == 0


def test_nvdisasm_says_the_same_in_its_own_words() -> None:
    code = functions_in(NVDISASM)
    assert code.arch == "sm_80"
    assert [(one.name, dict(one.opcodes)) for one in code.functions] == [
        ("SHFL", {"MOV": 1, "LDS.RZ": 1, "EXIT": 1, "BRA": 1})
    ]


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=300))
def test_any_text_is_read_without_an_instruction_that_is_not_there(text: str) -> None:
    code = functions_in(f"\t\tFunction : k\n{text}")
    for function in code.functions:
        for opcode in function.opcodes:
            assert opcode in text


@pytest.mark.parametrize(
    ("pattern", "opcode", "same"),
    [
        ("LDG.128", "LDG.E.128.CONSTANT", True),
        ("LDG.128", "LDG.E.64", False),
        ("LDG.128", "LDGSTS.E.BYPASS.128", False),
        ("LDG.STRONG.GPU", "LDG.E.STRONG.GPU", True),
        ("LDG.STRONG.GPU", "LDG.E.GPU.STRONG", False),
        ("RED", "REDG.E.ADD.STRONG.GPU", False),
        ("LD", "LDG.E", False),
        ("UCGABAR_*", "UCGABAR_WAIT", True),
        ("I2F*", "I2FP.F32.U32", True),
        ("HMMA.TF32", "HMMA.1688.F32.TF32", True),
        ("hmma", "HMMA.1688", False),
    ],
)
def test_a_pattern_is_a_base_and_modifiers_in_their_order(pattern: str, opcode: str, same: bool) -> None:
    assert matches(pattern, opcode) is same


WORD = st.sampled_from([True, False, None])


@given(st.lists(WORD))
def test_what_cannot_be_told_stays_so(words: list[bool | None]) -> None:
    assert every(words) is (False if False in words else None if None in words else True)
    assert some(words) is (True if True in words else None if None in words else False)


@pytest.mark.parametrize(
    ("clause", "now", "before", "word"),
    [
        (grew("HMMA"), {"HMMA.16816": 2}, {}, True),
        (grew("HMMA"), {"HMMA.16816": 2}, {"HMMA.1688": 2}, False),
        (grew("HMMA"), {}, None, False),
        (grew("HMMA"), {"HMMA.16816": 2}, None, None),
        (grew("HMMA", least=3), {"HMMA.16816": 2}, {}, False),
        (shrank("BAR.SYNC"), {"BAR.SYNC": 1}, {"BAR.SYNC.DEFER_BLOCKING": 2}, True),
        (shrank("BAR.SYNC"), {"BAR.SYNC": 2}, {"BAR.SYNC": 2}, False),
        (shrank("BAR.SYNC"), {}, None, None),
        (here("MUFU.EX2"), {"MUFU.EX2": 1}, {"MUFU.EX2": 1}, True),
        (Denser(("FFMA",), ("LDS",)), {"FFMA": 32, "LDS": 4}, {"FFMA": 8, "LDS": 4}, True),
        (Denser(("FFMA",), ("LDS",)), {"FFMA": 32, "LDS": 16}, {"FFMA": 8, "LDS": 4}, False),
        (Denser(("FFMA",), ("LDS",)), {"FFMA": 32}, {"FFMA": 8, "LDS": 4}, None),
        (Denser(("FFMA",), ("LDS",), ("LDG",)), {"FFMA": 32, "LDG": 4}, {"FFMA": 8, "LDG": 4}, True),
        (Denser(("FFMA",), ("LDS",)), {"LDS": 4}, {"FFMA": 8, "LDS": 4}, False),
        (More(("LDGDEPBAR",), ("DEPBAR.LE",)), {"LDGDEPBAR": 3, "DEPBAR.LE": 1}, {}, True),
        (Hint(("UTCQMMA",)), {"UTCQMMA": 1}, {}, None),
        (Hint(("UTCQMMA",)), {}, {}, False),
        (both(here("A"), grew("B")), {"A": 1, "B": 1}, None, None),
        (both(here("A"), grew("B")), {"B": 1}, None, False),
        (either(here("A"), grew("B")), {"A": 1}, None, True),
    ],
)
def test_a_clause_holds_or_not_or_cannot_be_told(clause, now, before, word) -> None:
    assert holds(clause, now, before) is word


def code(arch: str = "sm_90a", **functions: dict[str, int]) -> MachineCode:
    return MachineCode(arch, tuple(Function(name, Counter(count)) for name, count in functions.items()))


def test_a_scalar_instance_beside_it_does_not_hide_the_vectorised_one() -> None:
    parent = code(k={"LDG.E": 4, "STG.E": 4})
    both_there = code(k_wide={"LDG.E.128": 4, "STG.E.128": 4}, k={"LDG.E": 4, "STG.E": 4})
    said = check_method("wide_staging", both_there, parent)
    assert (said.status, said.kernel) == (Status.PASS, "k_wide")
    assert check_method("wide_staging", code(k={"LDG.E": 16, "STG.E": 16}), parent).status is Status.FAIL
    assert check_method("wide_staging", both_there, both_there).status is Status.FAIL


def test_a_function_is_compared_with_its_namesake_before_all_others() -> None:
    parent = (Function("_Z4fastILi4EEvPf", {}), Function("_Z4fastILi8EEvPf", {}), Function("slow", {}))
    assert counterparts(Function("slow", {}), parent) == parent[2:]
    assert counterparts(Function("_Z4fastILi2EEvPf", {}), parent) == parent[:2]
    assert counterparts(Function("new", {}), parent) == parent


def test_counts_of_a_module_are_taken_together_where_a_helper_could_hide_them() -> None:
    parent = code(k={"BAR.SYNC": 4})
    assert check_method("reduce_sync_count", code(k={"BAR.SYNC": 4}, fold={"LDG.E": 1}), parent).status is Status.FAIL
    assert check_method("reduce_sync_count", code(k={"BAR.SYNC": 2}, fold={"LDG.E": 1}), parent).status is Status.PASS


def test_without_a_table_or_a_parent_nothing_is_told() -> None:
    with_it, parent = code("sm_103a", k={"HMMA": 4}), code("sm_103a", k={})
    assert check_method("tensor_core", with_it, parent).status is Status.INCONCLUSIVE
    assert "sm_103a" in check_method("tensor_core", with_it, parent).why
    assert check_method("tensor_core", code(k={"HMMA": 4}), None).status is Status.INCONCLUSIVE
    assert check_method("tensor_core", code(k={"FFMA": 4}), None).status is Status.FAIL
    assert check_method("tensor_core", code(k={"HMMA": 4}), code("sm_80", k={})).status is Status.INCONCLUSIVE
    assert check_method("tma_multicast", code("sm_80", k={}), code("sm_80", k={})).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("name", ["memory.vectorized_access", "vectorized_access", "wide_staging"])
def test_a_method_is_known_by_its_name_with_its_axis_and_by_a_card(name: str) -> None:
    assert check_method(name, code(k={"LDG.E.128": 1}), code(k={"LDG.E": 4})).status is Status.PASS
    assert check_method(name, code(k={"LDG.E.128": 1}), code(k={"LDG.E": 4})).method == name


@pytest.mark.parametrize("name", ["cuda_graphs", "bank_layout", "an idea of a mind"])
def test_what_has_no_signature_is_neither_passed_nor_failed(name: str) -> None:
    assert check_method(name, code(k={"LDG.E.128": 1}), code(k={})).status is Status.NOT_APPLICABLE
    assert verify([name], Path("/nowhere"), None)[0].status is Status.NOT_APPLICABLE


SKILL = """
tensor_core mixed_precision warp_specialization launch_config thread_coarsening ilp_unroll_register_tile
overlap_compute_memory gemm_softmax_interleave two_level_accumulation_promotion fp8_fast_accumulation_mode
block_scaled_precision tf32_emulation_3xtf32_bf16x6 mufu_ex2_softmax_replacement reduction warp_shuffle loop_unroll
fma_and_fast_math lop3_bit_manipulation pragma_no_alias strength_reduce branch_eliminate handwritten_ptx_inline
structured_sparsity_2to4 welford_or_rmsnorm int8_tensorcore_calibrated block_sparse_tensorcore kernel_fusion
coalesced_access tiling_smem vectorized_access async_copy multi_stage_pipeline epilogue_fusion bank_conflict
ldmatrix_stmatrix register_pressure tma_multicast tma_descriptor_tuning epilogue_visitor_tree_fusion data_layout
ldg_cache_modifier_hint l2_persistence_window split_k_parallel_reduce cache_and_readonly smem_register_spilling
tma_im2col_implicit_conv distributed_smem tensor_map_rebuild_avoid explicit_l2_prefetch kv_cache_layout
layout_transform_fusion dequant_matmul_fusion async_pipeline reduce_sync_count warp_shuffle_sync
tile_scheduler_swizzle persistent_kernel stream_k_load_balancing online_recomputation warp_aggregated_atomics
asymmetric_mbarrier_sync pingpong_warpgroup_schedule producer_regdealloc_setmaxnreg intra_wg_gemm_softmax_pipeline
pdl_overlap cooperative_cluster static_launch_grid_graph cuda_graphs cluster_launch_control_scheduler stream_event
atomic_optimize grouped_gemm_scheduler independent_kernel_overlap attention_decode_persistent_schedule
moe_grouped_gemm
"""


def test_every_method_and_every_card_has_a_signature_or_says_what_shows_it_instead() -> None:
    known = {*SIGNATURES, *SILENT}
    listed = SKILL.split()
    assert len(listed) == 75
    assert set(listed) <= known
    cards = {card.name for card in all_cards() if {"cuda", "triton"} & set(card.languages)}
    assert cards - known - set(CARDS) == set()
    assert set(CARDS.values()) <= set(SIGNATURES)
    assert not set(SIGNATURES) & set(SILENT)
    assert set(CARDS) & cards == set(CARDS), "a card that is gone"


def test_a_card_that_promises_an_instruction_is_held_to_it() -> None:
    promised = {
        card.name for card in all_cards() if card.proof.startswith("SASS: ") and "in front of" not in card.proof
    }
    assert {name for name in promised if name not in CARDS} == set()


def test_no_machine_code_and_no_tool_are_inconclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "kernel.so"
    text.write_bytes(b"\x7fELF and nothing for a GPU" + bytes(200))
    assert verify(["tensor_core"], text, None)[0].status is Status.INCONCLUSIVE
    monkeypatch.setattr("team.evidence.sass.disassembly.find_tool", lambda name: None)
    text.write_bytes(b"\x7fELF .nv_fatbin")
    said = verify(["tensor_core", "cuda_graphs"], text, None)
    assert [one.status for one in said] == [Status.INCONCLUSIVE, Status.NOT_APPLICABLE]
    assert "cuobjdump" in said[0].why


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "exit status 3"),  # with nothing said: no pattern is missing, nobody looked
        ("echo 'Function : k'; exit 255", "exit status 255"),
        ("echo ''", "named no function"),
        ("exec sleep 20", "more than 0.2 s"),
    ],
)
def test_a_tool_that_fails_is_an_error_and_never_a_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    tool = tmp_path / "cuobjdump"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setattr("team.evidence.sass.disassembly.find_tool", lambda name: str(tool))
    artifact = tmp_path / "kernel.so"
    artifact.write_bytes(b"\x7fELF .nv_fatbin")
    found = verify(["tensor_core"], artifact, None, timeout_s=0.2)[0]
    assert found.status is Status.TOOL_ERROR
    assert said in found.why


@pytest.mark.skipif(not HAVE_TOOLS, reason="needs nvcc and cuobjdump")
def test_shared_objects_and_cubins_hidden_as_data_say_what_the_cubin_says(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void HMMA(float4* a) { a[threadIdx.x] = a[threadIdx.x + 32]; }\n')
    shared, host = tmp_path / "k.so", tmp_path / "host.so"
    command = ["nvcc", "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC", "--keep"]
    subprocess.run([*command, "--keep-dir", ".", "-o", str(shared), str(source)], check=True, timeout=60, cwd=tmp_path)
    cubin = next(path for path in tmp_path.glob("k*.cubin") if "dlink" not in path.name)
    image = ",".join(str(byte) for byte in cubin.read_bytes())
    (tmp_path / "host.cpp").write_text(f"alignas(64) extern const unsigned char image[] = {{{image}}};\n")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(host), str(tmp_path / "host.cpp")], check=True, timeout=60)
    plain = disassemble(cubin)
    assert plain.arch == "sm_90a"
    assert count(plain.opcodes, ("LDG.128",)) == 1
    assert disassemble(shared) == disassemble(host) == plain


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_TOOLS, reason="needs nvcc and cuobjdump")
def test_a_triton_kernels_machine_code_is_compared_as_any_other(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))
    from triton_on_disk import HEAD, PLAIN, write_task

    from team.judge.build import Builder
    from team.judge.triton.shop import TritonShop
    from team.tasks.task import load_task

    shop = TritonShop(Builder(tmp_path / "cache", tmp_path / "work"), tmp_path / "cache", "90a", FACTS)
    try:
        task = load_task(write_task(tmp_path / "task"))
        wide = PLAIN.replace("128", "1024")
        plain, vector = (shop.artifact(task, {"scaled.py": HEAD + text}, "candidate").path for text in (PLAIN, wide))
    finally:
        shop.close()
    passed = verify(["wide_staging"], vector, plain)[0]
    assert (passed.status, passed.kernel, passed.arch) == (Status.PASS, "scale", "sm_90a"), passed.why
    assert verify(["wide_staging"], plain, plain)[0].status is Status.FAIL
    assert verify(["tensor_cores"], vector, plain)[0].status is Status.FAIL


def test_undisassembled_is_one_sentence_with_its_status(tmp_path: Path) -> None:
    path = tmp_path / "empty.so"
    path.write_bytes(b"")
    with pytest.raises(Undisassembled) as found:
        disassemble(path)
    assert (found.value.status, found.value.why) == (Status.INCONCLUSIVE, "empty.so holds no machine code for a GPU")
