"""The verdict table of DESIGN section 4 as one pure function. First matching row wins, top to bottom."""

from math import log1p

from protocol.messages import Decision, Measurement, Outcome, Verdict
from protocol.policy import Policy

_OUTCOMES = {
    Outcome.TAMPERED: Verdict.TAMPERED,
    Outcome.BUILD_FAILED: Verdict.BUILD_FAILED,
    Outcome.INCORRECT: Verdict.INCORRECT,
    Outcome.CRASHED: Verdict.CRASHED,
    Outcome.TIMEOUT: Verdict.TIMEOUT,
}


def judge(measurement: Measurement, decision: Decision | None, simpler: bool, policy: Policy) -> tuple[Verdict, str]:
    """Verdict and its reason in one sentence.

    ``decision`` is the sequential test's word on the raw samples and is None exactly when nothing was measured;
    ``simpler`` says that the candidate's code is measurably simpler than its base's.
    """
    if measurement.outcome is not Outcome.MEASURED:
        return _OUTCOMES[measurement.outcome], measurement.detail or measurement.outcome.value
    if decision is None:
        raise ValueError("a measured experiment needs the decision on its samples")
    if wrong := _not_correct(measurement, decision):
        return Verdict.INCORRECT, wrong
    if decision.state == "keep":
        return Verdict.KEEP, decision.reason
    if simpler and decision.state != "continue" and _flat(decision, policy):
        return Verdict.KEEP_SIMPLER, f"simpler code at the same speed; {decision.reason}"
    if decision.state == "revert":
        return Verdict.REVERT, decision.reason
    return Verdict.UNRESOLVED, decision.reason


def _not_correct(measurement: Measurement, decision: Decision) -> str:
    """Which output is outside its tolerance, or which timed workload nobody compared; empty when all are correct."""
    for check in measurement.checks:
        if not check.worst <= 1.0:
            return f"workload {check.workload}: an output is {check.worst:.3g} times its tolerance away"
    compared = {check.workload for check in measurement.checks if check.checks}
    missing = sorted(decision.workloads.keys() - compared)
    if missing or not compared:
        return f"no output of {', '.join(missing) or 'any workload'} was compared"
    return ""


def _flat(decision: Decision, policy: Policy) -> bool:
    """No loss beyond the flat band is left in the interval, overall or on any workload beyond doubt."""
    overall = decision.overall
    inside = overall.low <= 0.0 <= overall.high and overall.low > log1p(-policy.threshold)
    spared = all(e.high >= log1p(-policy.worst_workload_loss) for e in decision.workloads.values())
    return inside and overall.gain > log1p(-policy.simpler_flat_band) and spared
