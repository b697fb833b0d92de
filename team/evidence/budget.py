"""How many methods the next iteration may change on each axis: what its gap deserves, and none without a gap."""

from protocol.messages import AxisGaps
from protocol.policy import Policy
from team.evidence.axes import as_mapping
from team.evidence.metrics import AXES, Axis


def axis_budget(gaps: AxisGaps, policy: Policy) -> dict[Axis, int]:
    """Methods per axis by the largest remainder, at most ``axis_cap`` each and ``axis_methods`` together.

    Only axes with a known gap of at least ``gap_from`` share in it. What they cannot take under the cap is not spent:
    an axis without a gap is never filled up with it.
    """
    wide: dict[Axis, float] = {}
    for axis, gap in as_mapping(gaps).items():
        if gap and gap >= policy.gap_from:
            wide[axis] = gap
    budget: dict[Axis, int] = dict.fromkeys(AXES, 0)
    quota: dict[Axis, float] = {}
    for axis, gap in wide.items():
        quota[axis] = policy.axis_methods * gap / sum(wide.values())
    for axis in quota:
        budget[axis] = min(policy.axis_cap, int(quota[axis]))
    while sum(budget.values()) < policy.axis_methods:
        waiting: list[Axis] = [axis for axis in quota if budget[axis] < policy.axis_cap]
        if not waiting:
            break
        budget[max(waiting, key=lambda axis: (quota[axis] - budget[axis], quota[axis]))] += 1
    return budget
