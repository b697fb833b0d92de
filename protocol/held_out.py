"""Shapes that no mind is told of: what is kept there must hold there. Pure.

A kernel that knows the listed shapes by heart gains on them and loses elsewhere. Where a landing or a submission was
measured on held-out shapes too, it must not be slower on them than what it replaces: not by the threshold over all of
them, and on none by more than a listed one may lose, each beyond doubt.
"""

from math import exp, log1p

from protocol.messages import Decision, Measurement, Noise
from protocol.policy import Policy
from protocol.sequential import estimate, target_gain


def held_to(decision: Decision, measured: Measurement, noise: Noise | None, policy: Policy) -> Decision:
    """The decision with the held-out shapes among its workloads; a keep that loses on them is a revert."""
    if not measured.held_out:
        return decision
    weights = dict.fromkeys(measured.held_out[0].pairs, 1.0)
    overall, each = estimate(measured.held_out, weights, noise, policy, policy.total_error)
    workloads = {**decision.workloads, **each}
    slower = overall.high < 0.0 and overall.gain <= -target_gain(noise, policy)
    worse = any(one.high < log1p(-policy.worst_workload_loss) for one in each.values())
    if decision.state != "keep" or not (slower or worse):
        return decision.model_copy(update={"workloads": workloads})
    worst = min(one.gain for one in each.values())
    reason = (
        f"it is slower on shapes that are not listed: {exp(overall.gain):.3f}x over all of them "
        f"[{exp(overall.low):.3f}, {exp(overall.high):.3f}], {exp(worst):.3f}x at worst"
    )
    return decision.model_copy(update={"state": "revert", "reason": reason, "workloads": workloads})
