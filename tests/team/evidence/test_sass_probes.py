"""Every signature is proven by what the installed nvcc makes of a probe, beside one that must not pass.

What is proven here for each architecture is the table of section 6 of the reference: HGMMA and UTCHMMA and no WGMMA or
UMMA, SYNCS and no MBARRIER, UTMALDG with its modifiers, REDG and no name of a function.
"""

import pytest
from probing import HAVE_TOOLS, TARGETS, alone, assembled

from roles.techniques.machine_code import FAMILY, SIGNATURES
from team.evidence.sass import Function, Status, check_method, count
from team.evidence.sass.clauses import kinds_of

pytestmark = pytest.mark.skipif(not HAVE_TOOLS, reason="needs nvcc and cuobjdump")

SAME_PROBE = {
    "warp_shuffle": "reduction",
    "async_pipeline": "async_copy",
    "intra_wg_gemm_softmax_pipeline": "gemm_softmax_interleave",
}
"""Methods that are proven by another's probe."""

Probes = tuple[str, dict[str, Function]]


OTHERS = [pytest.param(target, marks=pytest.mark.slow) for target in ("86", "89")]
"""Architectures that share another's table."""


@pytest.fixture(scope="module", params=[*TARGETS, *OTHERS])
def probes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Probes:
    return request.param, assembled(request.param, tmp_path_factory.mktemp("probes"))


def test_every_signature_passes_its_probe_and_fails_the_near_miss(probes: Probes) -> None:
    target, found = probes
    wrong: list[str] = []
    for method, signature in SIGNATURES.items():
        if FAMILY[f"sm_{target}"] not in signature.clauses:
            continue
        probe = SAME_PROBE.get(method, method)
        before = alone(target, found[f"{probe}__before"])
        for kind, wanted in (("with", Status.PASS), ("miss", Status.FAIL)):
            said = check_method(method, alone(target, found[f"{probe}__{kind}"]), before)
            if said.status is not wanted:
                wrong.append(f"{method} {kind}: {said.status.value}, {said.why}")
        unchanged = check_method(method, before, before)
        if unchanged.status is Status.PASS:
            wrong.append(f"{method}: the parent passes against itself, {unchanged.why}")
    assert not wrong, "\n".join(wrong)


def test_every_pattern_of_the_table_is_met_in_what_nvcc_makes(probes: Probes) -> None:
    target, found = probes
    family = FAMILY[f"sm_{target}"]
    used = {kind for one in SIGNATURES.values() if family in one.clauses for kind in kinds_of(one.clauses[family])}
    unmet = sorted(kind for kind in used if not any(count(one.opcodes, (kind,)) for one in found.values()))
    assert not unmet, f"sm_{target}: no probe shows {', '.join(unmet)}"


def test_what_the_skill_looked_for_is_nowhere_in_the_opcodes(probes: Probes) -> None:
    _, found = probes
    never = ("WGMMA", "UMMA", "MBARRIER*", "CP", "SETMAXREG", "GRIDDEPCONTROL", "CLC", "DP4A", "PREFETCH", "LDG.CG",
             "LDG.CS", "LDG.CI", "LDS.CLUSTER", "STS.CLUSTER")  # fmt: skip
    assert not {kind: name for name, one in found.items() for kind in never if count(one.opcodes, (kind,))}


def test_one_counter_for_all_is_aggregated_by_the_compiler_and_proves_nothing(probes: Probes) -> None:
    target, found = probes
    before = alone(target, found["one_counter__before"])
    assert count(before.opcodes, ("VOTE", "VOTEU")) > 0
    assert count(before.opcodes, ("POPC", "UPOPC")) > 0
    for name in ("one_counter__before", "one_counter__miss"):
        assert check_method("warp_aggregated_atomics", alone(target, found[name]), before).status is Status.FAIL


def test_a_name_full_of_mnemonics_is_no_instruction(probes: Probes) -> None:
    target, found = probes
    odd = found["reduction__miss"]
    named = Function("SHFL_RED_REDUX_HGMMA_reduce", odd.opcodes)
    before = alone(target, found["reduction__before"])
    for method in ("reduction", "warp_shuffle", "tensor_core"):
        assert check_method(method, alone(target, named), before).status is Status.FAIL


def test_block_scaling_of_fp8_cannot_be_told_from_plain_fp8_on_sm_100a(probes: Probes) -> None:
    target, found = probes
    if target != "100a":
        return
    before = alone(target, found["fp8_fast_accumulation_mode__before"])
    plain = alone(target, found["fp8_fast_accumulation_mode__with"])
    assert check_method("block_scaled_precision", plain, before).status is Status.INCONCLUSIVE
