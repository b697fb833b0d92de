"""Where a kernel stands, by the best means that its device permits: counters, else times, else a compiler's remarks.

Profiling loads the task, builds, and runs the candidate's code, so it has a process of its own (``worker``), which is
ended with all that it started when it takes too long. Whatever fails there leaves the compiler's report and a sentence.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from protocol.messages import Message, ProfileReport
from protocol.policy import Policy
from roles.minds.anthropic.key import without_keys
from team.devices.device import Device
from team.evidence.compiled import compiler_report
from team.evidence.counters import missing_counters
from team.evidence.metrics import Bundle
from team.tasks.spec import read_spec

WORKER_S = 540.0  # seconds; its own steps have shorter deadlines
_LEAVE_S = 5.0
_TAIL = 300


class Request(Message):
    """What the worker is asked. ``scratch``: the judge's build cache; ``keep``: where a profiler's report stays."""

    device: str
    trusted: str
    tree: str
    commit: str
    scratch: str
    keep: str
    law: Policy | None = None
    pinned: Bundle | Literal[""] = ""
    workload: str = ""
    most: int = 5


class Answer(Message):
    """A report, or one sentence about why there is none."""

    report: ProfileReport | None = None
    why: str = ""


@dataclass(frozen=True)
class Place:
    """Where a profile is taken and what it may use."""

    device: Device
    scratch: Path
    keep: Path
    law: Policy | None = None


def profile(trusted: Path, tree: Path, commit: str, place: Place | None = None, pinned: str = "") -> ProfileReport:
    """The profile of the kernel at ``tree`` for the task at ``trusted``, as a campaign's duty asks for it.

    Without a place nothing is run. On a CPU that counts nothing for us only the compiler is asked.
    """
    stand_in = compiler_report(read_spec(trusted), tree, commit)
    if place is None:
        return stand_in
    if place.device.id.startswith("cpu") and (why := missing_counters()):
        return with_remark(stand_in, why)
    answer = measured(place, trusted, tree, commit, pinned)
    return answer.report or with_remark(stand_in, f"nothing was measured: {answer.why}")


def measured(
    place: Place, trusted: Path, tree: Path, commit: str, pinned: str = "", workload: str = "", most: int = 5
) -> Answer:
    """What the worker says."""
    request = Request.model_validate(
        {
            "device": place.device.id,
            "trusted": str(trusted),
            "tree": str(tree),
            "commit": commit,
            "scratch": str(place.scratch),
            "keep": str(place.keep),
            "law": place.law,
            "pinned": pinned,
            "workload": workload,
            "most": most,
        }
    )
    with tempfile.TemporaryDirectory(prefix="kernelteam-profiling-") as folder:
        asked, answered, log = (Path(folder) / name for name in ("request.json", "answer.json", "log"))
        asked.write_text(request.model_dump_json())
        with log.open("wb") as output:
            ended = _worked([sys.executable, "-m", "team.evidence.worker", str(asked), str(answered)], output.fileno())
        if answered.is_file():
            return Answer.model_validate_json(answered.read_text())
        said = " ".join(log.read_text(errors="replace").split())[-_TAIL:]
        return Answer(why=f"the profiling process {ended}{f': {said}' if said else ''}")


def with_remark(report: ProfileReport, remark: str) -> ProfileReport:
    """The report with one sentence more, in front."""
    return report.model_copy(update={"remarks": (remark, *report.remarks)})


def _worked(command: list[str], output: int) -> str:
    """Run the worker to its end, or end it; how that was, in words."""
    with subprocess.Popen(
        command, env=without_keys(os.environ), stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
    ) as process:
        try:
            return f"left with status {process.wait(WORKER_S)}"
        except subprocess.TimeoutExpired:
            return f"did not end within {WORKER_S:g} s"
        finally:
            if process.poll() is None:
                process.terminate()  # it ends what it started
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LEAVE_S)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
