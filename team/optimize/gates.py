"""The gates of an optimizing run: what must hold before anything is generated, and how a run ends when it does not.

Reasons and exit codes are those of the optimizer skills: 0 verified, 2 the kernel or every branch failed, 3 hardware,
tools or profiler, 4 baseline, reference or contract. What fails at a gate after the run exists writes ``stop.json``.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from protocol.messages import Measurement, Outcome


class Exit(IntEnum):
    """What the command exits with."""

    VERIFIED = 0
    KERNEL = 2
    HARDWARE = 3
    CONTRACT = 4


REASONS = {
    "environment_unavailable": Exit.HARDWARE,
    "iteration_hardware_unavailable": Exit.HARDWARE,
    "baseline_preflight_failed": Exit.CONTRACT,
    "baseline_contract_failed": Exit.CONTRACT,
    "baseline_compile_failed": Exit.KERNEL,
    "baseline_correctness_failed": Exit.KERNEL,
    "baseline_timing_invalid": Exit.KERNEL,
    "baseline_ncu_failed": Exit.HARDWARE,
    "iteration_ncu_failed": Exit.HARDWARE,
    "iteration_correctness_failed": Exit.KERNEL,
    "iteration_timing_invalid": Exit.KERNEL,
    "iteration_no_valid_branch": Exit.KERNEL,
    "methods_missing": Exit.CONTRACT,
}


@dataclass
class Stopped(Exception):
    """A gate refused. ``stage`` is where (setup, baseline, iteration), ``detail`` one sentence with the evidence."""

    stage: str
    reason: str
    detail: str
    iteration: int = 0
    attempts: int = 1
    environment: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        super().__init__(f"{self.reason}: {self.detail}")

    @property
    def exit_code(self) -> Exit:
        """What the command exits with."""
        return REASONS[self.reason]

    def as_json(self, generated: int) -> dict[str, Any]:
        """``stop.json``."""
        failed = self.exit_code is Exit.KERNEL
        return {
            "status": "stopped",
            "iteration": self.iteration,
            "stage": self.stage,
            "reason": self.reason,
            "iteration_status": "failed_validation" if failed else "stopped",
            "attempts": self.attempts,
            "last_error": self.detail,
            "generated_iterations": generated,
            "next_iteration": None,
            "exit_code": int(self.exit_code),
        }


_BASELINE = {
    Outcome.BUILD_FAILED: "baseline_compile_failed",
    Outcome.INCORRECT: "baseline_correctness_failed",
    Outcome.TAMPERED: "baseline_contract_failed",
    Outcome.CRASHED: "baseline_timing_invalid",
    Outcome.TIMEOUT: "baseline_timing_invalid",
}
_CHAMPION = {
    Outcome.INCORRECT: "iteration_correctness_failed",
    Outcome.TAMPERED: "iteration_correctness_failed",
    Outcome.BUILD_FAILED: "iteration_no_valid_branch",
    Outcome.CRASHED: "iteration_timing_invalid",
    Outcome.TIMEOUT: "iteration_timing_invalid",
}


def refuse_baseline(measured: Measurement) -> None:
    """Raise ``Stopped`` unless the baseline was built, right and launched on every workload."""
    if measured.outcome is not Outcome.MEASURED:
        raise Stopped("baseline", _BASELINE[measured.outcome], measured.detail)


def champion_reason(measured: Measurement) -> str:
    """The reason under which a champion that failed its measurement is recorded; empty when it did not."""
    return _CHAMPION.get(measured.outcome, "")


def states_of(measured: Measurement) -> dict[str, str]:
    """The tri-state evidence of one candidate: pass, fail or inconclusive; what was not looked at is not passed."""
    order = ("compile_pass", "contract_pass", "correctness_pass", "timing_valid")
    failing = {
        Outcome.BUILD_FAILED: "compile_pass",
        Outcome.TAMPERED: "contract_pass",
        Outcome.INCORRECT: "correctness_pass",
        Outcome.CRASHED: "correctness_pass",
        Outcome.TIMEOUT: "timing_valid",
    }.get(measured.outcome)
    states = dict.fromkeys(order, "pass" if failing is None else "inconclusive")
    if failing is not None:
        for name in order:
            if name == failing:
                states[name] = "fail"
                break
            states[name] = "pass"
    elif not measured.restarts:
        states["timing_valid"] = "inconclusive"
    return {**states, "race_safe": "inconclusive"}
