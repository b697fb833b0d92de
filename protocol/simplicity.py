"""When one version of the code counts as simpler than another. Pure; ``team.judge.simplicity`` takes the measures."""

from collections.abc import Mapping

from protocol.policy import Policy

MEASURES = ("tokens", "branches", "knobs")


def is_simpler(simplicity: Mapping[str, tuple[int, int]], policy: Policy) -> bool:
    """True when tokens fell by at least the policy's share and neither branches nor knobs grew.

    ``simplicity`` is ``Measurement.simplicity``: measure -> (base, candidate). False when a measure is missing.
    """
    if not all(measure in simplicity for measure in MEASURES):
        return False
    grew = any(candidate > base for base, candidate in (simplicity[measure] for measure in MEASURES))
    base, candidate = simplicity["tokens"]
    return not grew and candidate < base and candidate <= base * (1.0 - policy.simpler_token_drop)
