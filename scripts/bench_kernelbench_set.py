"""Our set of KernelBench problems on one device: imported, judged, exported, and evaluated by the benchmark's rules.

    python scripts/bench_kernelbench_set.py --out DIR [--device cuda] [--languages triton cuda] [--precision fp32]
                                            [--seconds 300] [--repeats 100] [--small ELEMENTS] [--only PART ...]

Every problem of ``benchmarks/kernelbench_set`` goes the user's way: ``init`` writes its first kernel, the judge checks
it, ``export`` makes one ModelNew of it, and ``scripts/kernelbench_eval.py``, which follows the benchmark's own rules,
says whether it is right and how fast beside eager and ``torch.compile`` in the same run. A few kernels are spoilt on
purpose, so that judge and script can also agree on a wrong one.

Every case is a process of its own: all import, compile and are checked side by side, by the script and by several
judges. What a judge refuses while others compute, where the script does not, or could not answer, is asked again
alone. Then the times are taken one case after the other, while every other process waits; one that is not so far by
``SHARE`` of the time is stopped meanwhile and comes last. Problems come in an order that mixes levels and languages.
After every step ``kernelbench-set.json`` and ``kernelbench-set.txt`` in DIR hold what is known, and nothing goes on
after ``--seconds``. The exit status is 1 when judge and script disagree, or when something stayed undone.
"""

import argparse
import json
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from kernelbench_cases import DIED, MADE, REFUSED, Case, cases, row, summaries, summary_lines  # noqa: E402
from kernelbench_one import live  # noqa: E402

from protocol.messages import Outcome  # noqa: E402
from team.devices import discover  # noqa: E402
from team.devices.lock import exclusive  # noqa: E402
from team.errors import UserError  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.failures import BaselineBroken, JudgeDied  # noqa: E402
from team.judge.request import Check  # noqa: E402

SHARE = 0.6
"""Of the time, after which times are taken even if some cases are not ready."""
LOOK_S = 0.2
SPAWN = multiprocessing.get_context("spawn")  # a child forked from a process that knows CUDA has none


@dataclass
class Turns:
    """See ``kernelbench_one.Turns``."""

    places: Any
    device: Any


@dataclass
class Child:
    """A case's process and the line to it; ``ready`` when only its times are left."""

    case: Case
    process: Any
    line: Connection
    ready: bool = False
    over: bool = False


class Bench:
    """One run over the cases, within its time."""

    def __init__(self, asked: argparse.Namespace, scratch: Path) -> None:
        self._asked, self._scratch = asked, scratch
        self._begun = time.monotonic()
        self._until = self._begun + asked.seconds
        self._device = discover(asked.device, 1)[0]  # now, while it is idle
        self._turns = Turns(SPAWN.BoundedSemaphore(asked.parallel), SPAWN.Event())
        self._to_judge: queue.Queue[Case] = queue.Queue()
        self._calls, self._open, self._busy = threading.Condition(), False, 0
        self._lock = threading.Lock()
        self.cases = cases(asked.languages, asked.only)
        self._children = [self._begun_with(case) for case in self.cases]

    def _begun_with(self, case: Case) -> Child:
        ours, theirs = SPAWN.Pipe()
        arguments = (case, self._scratch / case.name, self._asked, self._turns, theirs)
        process = SPAWN.Process(target=live, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Child(case, process, ours)

    def carry_out(self) -> None:
        """Everything, as far as the time reaches."""
        with ExitStack() as stack:
            stack.callback(self._end)
            stack.enter_context(exclusive(self._device.id))  # the judges are this process's children
            judges = [Judge(self._device, self._scratch / f"judge-{n}") for n in range(self._asked.judges)]
            for judge in judges:
                stack.callback(judge.kill)
            stack.callback(self._close)
            judges[0].start()  # measures the device's roofs when it is the first on this machine
            self._turns.device.set()
            for judge in judges:
                threading.Thread(target=self._judging, args=(judge,), daemon=True).start()
            until = self._begun + SHARE * self._asked.seconds
            while time.monotonic() < self._until and not self._answered():
                self._side_by_side(until)
                self._again(judges[0])
                for child in self._children:
                    self._timed(child)
                until = time.monotonic() + (self._until - time.monotonic()) / 2

    def _answered(self) -> bool:
        """Whether nothing is left to hear: every case is over, and a judge has said something of each that was made."""
        judged = all(child.case.judge or child.case.made not in ("", MADE) for child in self._children)
        return judged and all(child.over for child in self._children)

    def _close(self) -> None:
        """Nothing is begun any more."""
        self._until = 0.0

    def _end(self) -> None:
        """Kill every case's process with all that it started."""
        for child in self._children:
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.kill()
            child.process.join()

    # ---------------------------------------------------------------- side by side

    def _side_by_side(self, until: float) -> None:
        """Hear what the cases say until each is ready, over, or late, and the judges have answered; then all wait."""
        self._let(signal.SIGCONT)
        with self._calls:
            self._open = True
            self._calls.notify_all()
        while time.monotonic() < until:
            open_ones = [child for child in self._children if not (child.ready or child.over)]
            judged = all(child.case.judge or child.case.made not in ("", MADE) for child in self._children)
            if judged and not open_ones:
                break
            self._hear(open_ones, LOOK_S)
        self._let(signal.SIGSTOP)
        with self._calls:
            self._open = False
            self._calls.wait_for(lambda: self._busy == 0, max(0.0, self._until - time.monotonic()))

    def _let(self, sign: signal.Signals) -> None:
        """Stop those that are not ready, or let them go on."""
        for child in self._children:
            if not (child.ready or child.over):
                with suppress(ProcessLookupError):
                    os.kill(child.process.pid, sign)

    def _hear(self, children: list[Child], seconds: float) -> None:
        if not children:
            time.sleep(seconds)
        for line in wait([child.line for child in children], seconds):
            self._heard(next(child for child in children if child.line is line))

    def _heard(self, child: Child) -> None:
        case = child.case
        try:
            what, body, seconds = child.line.recv()
        except EOFError:
            child.over = True
            child.process.join()
            if "correct" not in case.script and case.made == MADE:
                reason = f"its process ended with status {child.process.exitcode}: {self._last_words(case)}"
                case.script = {"problem": case.problem, "correct": False, "reason": reason}
            self._write()
            return
        case.seconds[what] = seconds
        if what == "made":
            case.made = body
            if body == MADE:
                self._to_judge.put(case)
        else:
            case.script = body
        child.ready, child.over = what == "ready", what in ("script", "timed")
        self._write()

    def _last_words(self, case: Case) -> str:
        return (self._scratch / f"{case.name}.log").read_text(errors="replace").strip()[-300:]

    def _judging(self, judge: Judge) -> None:
        """One judge, for as long as there is something to judge; it ends with this process."""
        if judge.pid is None:
            judge.start()
        while True:
            case = self._to_judge.get()
            with self._calls:
                self._calls.wait_for(lambda: self._open)
                self._busy += 1
            try:
                self._judged(case, judge)
            finally:
                with self._calls:
                    self._busy -= 1
                    self._calls.notify_all()

    def _judged(self, case: Case, judge: Judge) -> None:
        begun, folder = time.monotonic(), str(self._scratch / case.name)
        try:
            found = judge.check(Check(task=folder, tree=folder))
        except (BaselineBroken, UserError) as error:
            case.judge, case.detail = REFUSED, str(error)[:300]
        except JudgeDied as died:
            case.judge, case.detail = DIED, str(died)[:300]
            if time.monotonic() < self._until:
                judge.start()
        else:
            case.worst = max((check.worst for check in found.checks), default=None)
            case.judge, case.detail = found.outcome.value, found.detail[:300]
        case.seconds["judge"] = round(time.monotonic() - begun, 1)
        self._write()

    # ---------------------------------------------------------------- alone on the device

    def _again(self, judge: Judge) -> None:
        """Ask once more, alone, where a judge refused what the script took for right."""
        for case in self.cases:
            unsure = case.agrees is False and case.judge != Outcome.MEASURED.value
            if (unsure or case.judge in (REFUSED, DIED)) and time.monotonic() < self._until:
                case.detail = ""
                self._judged(case, judge)

    def _timed(self, child: Child) -> None:
        if not child.ready or time.monotonic() > self._until:
            return
        child.ready = False
        child.line.send("go")
        while not child.over and time.monotonic() < self._until:
            self._hear([child], LOOK_S)

    def _write(self) -> None:
        with self._lock:
            write(self.cases, self._asked)


def write(found: list[Case], asked: argparse.Namespace) -> None:
    """Everything that is known, each file replaced at once."""
    told = summaries(found)
    asked_for = {name: str(value) for name, value in vars(asked).items()}
    body = {"asked": asked_for, "summary": told, "cases": [{**asdict(one), "agrees": one.agrees} for one in found]}
    lines = [*map(row, found), "", *summary_lines(told)]
    for name, text in (("json", json.dumps(body, indent=1)), ("txt", "\n".join(lines))):
        beside = asked.out / f".kernelbench-set.{name}"
        beside.write_text(text + "\n")
        beside.replace(asked.out / f"kernelbench-set.{name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--languages", nargs="+", choices=["triton", "cuda", "cpp"])
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--each", type=float, default=1.0, help="seconds of timed calls a problem, about")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--small", type=int, default=0, help="sizes halved until a launch has so many elements")
    parser.add_argument("--parallel", type=int, default=64, help="cases side by side")
    parser.add_argument("--judges", type=int, default=6)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="of a case's name")
    asked = parser.parse_args()
    asked.languages = asked.languages or (["triton", "cuda"] if asked.device == "cuda" else ["cpp"])
    asked.judges = asked.judges if asked.device == "cuda" else 1
    asked.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kt-kernelbench-", ignore_cleanup_errors=True) as name:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{name}/inductor"
        os.environ["TRITON_CACHE_DIR"] = f"{name}/triton"
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        bench = Bench(asked, Path(name))
        bench.carry_out()
    write(bench.cases, asked)
    print((asked.out / "kernelbench-set.txt").read_text())
    return 0 if all(case.agrees and case.done for case in bench.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
