"""Every signature is proven by what the installed nvcc makes of a probe, beside one that must not pass."""

import pytest
from probing import HAVE_TOOLS, TARGETS, alone, assembled

from roles.techniques.machine_code import FAMILY, SIGNATURES
from team.evidence.sass import Function, Status, check_method

pytestmark = pytest.mark.skipif(not HAVE_TOOLS, reason="needs nvcc and cuobjdump")

SAME_PROBE = {"warp_shuffle": "reduction"}
"""Methods that are proven by another's probe."""


@pytest.fixture(scope="module", params=TARGETS)
def probes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Function]]:
    return request.param, assembled(request.param, tmp_path_factory.mktemp("probes"))


def test_every_signature_passes_its_probe_and_fails_the_near_miss(probes: tuple[str, dict[str, Function]]) -> None:
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
