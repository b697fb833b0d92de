"""What the judge's quick look at a change says, in words that do not differ between two looks at the same text."""

from protocol.messages import Measurement, Outcome

_REMARKS = 24
_DETAIL = 4000


def in_words(measured: Measurement) -> str:
    """Whether it builds and is right, and what the compiler remarked. Nothing is timed."""
    build = measured.candidate_build
    remarks = list(build.remarks[:_REMARKS]) if build else []
    if measured.outcome is Outcome.MEASURED:
        names = ", ".join(check.workload for check in measured.checks)
        first = f"it builds and is right on {names or 'every workload'}"
    else:
        where = f" on workload {measured.workload}" if measured.workload else ""
        first = f"{measured.outcome.value}{where}: {measured.detail[:_DETAIL]}"
    return "\n".join([first, *(f"compiler: {remark}" for remark in remarks)])
