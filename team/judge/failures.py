"""How an evaluation ends early. Each exception carries what the ledger needs and what the user reads. Trusted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from protocol.messages import Outcome
from team.errors import UserError

Side = Literal["base", "candidate"]


class Failed(Exception):
    """One side did not get as far as a verdict: ``outcome``, one clause, the workload when there is one."""

    def __init__(self, side: Side, outcome: Outcome, detail: str, workload: str = "") -> None:
        super().__init__(detail)
        self.side: Side = side
        self.outcome = outcome
        self.detail = detail
        self.workload = workload

    @property
    def sentence(self) -> str:
        """Which side, what happened and where."""
        where = f" on workload {self.workload}" if self.workload else ""
        return f"The {self.side} failed{where}: {self.detail}."


@contextmanager
def unnamed() -> Iterator[None]:
    """Failures on shapes that no mind is told of say what happened and not where: minds read these sentences."""
    try:
        yield
    except Failed as failed:
        what = _UNNAMED.get(failed.outcome, "it failed")
        raise Failed(failed.side, failed.outcome, f"{what} on a shape that is not listed") from None


_UNNAMED = {
    Outcome.INCORRECT: "an output is wrong",
    Outcome.CRASHED: "its process ended",
    Outcome.TIMEOUT: "it took too long",
    Outcome.TAMPERED: "it did what no kernel may",
}


class BaselineBroken(UserError):
    """The base itself fails, so nothing can be measured against it; a campaign refuses to start or to go on."""

    @classmethod
    def of(cls, failed: Failed) -> "BaselineBroken":
        """The user's sentence about a base that failed."""
        remedy = "Repair the base kernel"
        if failed.workload:
            remedy += ", or list the workload as known_broken in task.toml with the reason"
        return cls(f"The baseline is broken ({failed.outcome.value}). {failed.sentence}", remedy + ".")


class JudgeDied(Exception):
    """The judge process is gone; ``log`` is the end of what it wrote. The caller may start another."""

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(f"{what}\n{log}" if log else what)
        self.what = what
        self.log = log


class BuildFailed(Exception):
    """The compiler refused the source: ``output`` is an excerpt of what it said."""

    def __init__(self, what: str, output: str = "") -> None:
        super().__init__(f"{what} {output}".strip())
        self.what = what
        self.output = output


class Foreign(Exception):
    """The source pulls in a file from outside its folder and the system's headers."""


class Forbidden(Exception):
    """The source holds a construct that no kernel needs; the text is one clause with file and line."""


class RunnerEnded(Exception):
    """A runner's process ended by itself: killed by ``signal`` (its name), or left with an exit status."""

    def __init__(self, signal: str, status: int) -> None:
        super().__init__(f"was killed by {signal}" if signal else f"left by itself with exit status {status}")
        self.signal = signal
        self.status = status


class RunnerGreedy(RunnerEnded):
    """A runner was killed because it held ``held`` bytes of the host's memory."""

    def __init__(self, held: int) -> None:
        super().__init__("SIGKILL", -9)
        self.args = (f"took {held / 2**30:.1f} GiB of the host's memory and was killed",)


class RunnerSilent(Exception):
    """A runner did not answer before its deadline (seconds)."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"gave no answer within {waited_s:.1f} s")
        self.waited_s = waited_s


class RunnerFaulted(Exception):
    """The device refused what the kernel did: ``error`` is CUDA's own name and sentence."""

    def __init__(self, error: str) -> None:
        super().__init__(f"met the CUDA error {error}")
        self.error = error


class RunnerRaised(Exception):
    """A candidate's host code raised an exception: its own last line."""

    def __init__(self, said: str) -> None:
        super().__init__(f"raised {said}".rstrip("."))
        self.said = said


class RunnerLied(Exception):
    """A runner sent something that the protocol does not allow; only foreign code in it can do that."""
