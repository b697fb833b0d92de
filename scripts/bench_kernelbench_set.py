"""Our set of KernelBench problems on one device: imported, judged, exported, and evaluated by the benchmark's rules.

    python scripts/bench_kernelbench_set.py --out DIR [--device cuda] [--languages triton cuda] [--precision fp32]
                                            [--seconds 450] [--repeats 100] [--small ELEMENTS] [--only PART ...]

Every problem of ``benchmarks/kernelbench_set`` goes the user's way: ``kernelteam init`` writes its first kernel, the
judge checks it, ``kernelteam export`` makes one ModelNew of it, and ``scripts/kernelbench_eval.py``, which follows the
benchmark's own rules, says whether it is right and how fast beside eager and ``torch.compile`` in the same run. A few
kernels are spoilt on purpose, so that judge and script can also agree on a wrong one.

Problems come in an order that mixes the levels, the first language before the second. They go in waves: imports and
compilations of a wave side by side, then the judge alone on the device, then times one after the other. After every
step ``kernelbench-set.json`` and ``kernelbench-set.txt`` in DIR hold what is known, and nothing goes on after
``--seconds``. The exit status is 1 when judge and script disagree, or when something stayed undone.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from kernelbench_cases import MADE, SET, Case, cases, row, summaries, summary_lines  # noqa: E402

from team.devices import discover  # noqa: E402
from team.errors import UserError  # noqa: E402
from team.judge.client import Judge  # noqa: E402
from team.judge.failures import BaselineBroken, JudgeDied  # noqa: E402
from team.judge.request import Check  # noqa: E402
from team.tasks.formats.kernelbench.importing import small_sizes  # noqa: E402
from team.tasks.formats.kernelbench.problem import read_problem  # noqa: E402
from team.tasks.task import load_task  # noqa: E402

EACH_S = 90.0
"""The longest that one step of one problem may take."""


class Late(Exception):
    """There is no time left for this step."""


class Bench:
    """One run over the cases, within its time."""

    def __init__(self, asked: argparse.Namespace, scratch: Path) -> None:
        self._asked, self._scratch = asked, scratch
        self._until = time.monotonic() + asked.seconds
        self._device = discover(asked.device, 1)[0]  # now, while it is idle
        self._lock, self._running = threading.Lock(), set[int]()
        self._environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor")}
        self._environment |= {"TRITON_CACHE_DIR": str(scratch / "triton"), "TORCHINDUCTOR_COMPILE_THREADS": "2"}
        self.cases = cases(asked.languages, asked.only)

    def carry_out(self) -> None:
        """All waves, as far as the time reaches."""
        width = self._asked.parallel
        with ThreadPoolExecutor(max(1, width // 2)) as importers, ThreadPoolExecutor(width) as compilers:
            try:
                ready = [importers.submit(self._imported, case) for case in self.cases]
                for begin in range(0, len(self.cases), width):
                    every = slice(begin, begin + width)
                    list(compilers.map(self._compiled, self.cases[every], ready[every]))
                    wave = [case for case in self.cases[every] if case.made == MADE]
                    self._judged(wave)
                    for case in wave:
                        self._timed(case)
            except Late:
                print("the time is up", flush=True)
            finally:
                self.end()

    def end(self) -> None:
        """Kill what runs, and begin nothing more."""
        self._until = 0.0
        with self._lock:
            for group in self._running:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)

    def _step(self, case: Case, name: str, act: Callable[[], None]) -> None:
        """One step of one case, its seconds noted, and everything that is known written down."""
        begun = time.monotonic()
        if begun > self._until:
            raise Late
        act()
        case.seconds[name] = round(time.monotonic() - begun, 1)
        with self._lock:
            write(self.cases, self._asked)

    # ---------------------------------------------------------------- side by side

    def _imported(self, case: Case) -> None:
        with suppress(Late):
            self._step(case, "import and export", lambda: self._made(case))

    def _made(self, case: Case) -> None:
        folder, problem = self._scratch / case.name, SET / f"{case.problem}.py"
        words = ["init", str(problem), "--folder", str(folder), "--language", case.language]
        words += ["--precision", self._asked.precision]
        if self._asked.small:
            words += [f"--dim={name}={size}" for name, size in self._small(problem).items()]
        told = self._product(words)
        if not told and case.spoilt:
            spoil(folder)
        case.made = told or self._product(["export", str(folder), "-o", str(self._solution(case))]) or MADE

    def _compiled(self, case: Case, ready: Future[None]) -> None:
        """Judged by the script, everything compiled on the way; no times."""
        ready.result()
        if case.made == MADE:
            with suppress(Late):
                self._step(case, "compile", lambda: self._evaluated(case, 0))

    def _small(self, problem: Path) -> dict[str, int]:
        return small_sizes(read_problem(problem), self._asked.small)

    def _product(self, words: list[str]) -> str:
        """A command of the product; empty, or what it says in place of success. It gets no GPU."""
        status, told = self._run([sys.executable, "-m", "team.cli", *words], {"CUDA_VISIBLE_DEVICES": ""})
        return "" if status == 0 else told.strip().splitlines()[-1] if told.strip() else f"exit status {status}"

    def _solution(self, case: Case) -> Path:
        return self._scratch / f"{case.name}.py"

    def _evaluated(self, case: Case, repeats: int) -> None:
        """What the script says of the export."""
        problem, found = SET / f"{case.problem}.py", self._scratch / f"{case.name}.json"
        words = [sys.executable, str(ROOT / "scripts" / "kernelbench_eval.py"), f"{problem}={self._solution(case)}"]
        words += ["--device", self._asked.device, "--precision", self._asked.precision, "--repeats", str(repeats)]
        words += ["-o", str(found), *(["--no-compile"] if self._asked.no_compile or case.spoilt else [])]
        if self._asked.small:
            words += [f"--dim={name}={size}" for name, size in self._small(problem).items()]
        status, told = self._run(words, {})
        if found.exists():
            case.script = json.loads(found.read_text())["results"][0]
            found.unlink()
        elif time.monotonic() < self._until:
            reason = f"exit status {status}: {told.strip()[-300:]}"
            case.script = {"problem": problem.stem, "correct": False, "reason": reason}

    def _run(self, words: Sequence[str], more: dict[str, str]) -> tuple[int, str]:
        """A process in a session of its own, ended with everything it started when its time is over."""
        left = min(EACH_S, self._until - time.monotonic())
        if left <= 0:
            raise Late
        with tempfile.TemporaryFile("w+") as told:
            process = subprocess.Popen(
                words, cwd=ROOT, env={**self._environment, **more}, stdin=subprocess.DEVNULL, stdout=told,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            with self._lock:
                self._running.add(process.pid)
            try:
                status = process.wait(left)
            except subprocess.TimeoutExpired:
                status = 124
            finally:
                with self._lock:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    self._running.discard(process.pid)
                process.wait()
            told.seek(0)
            return status, told.read() or ("it took too long" if status == 124 else "")

    # ---------------------------------------------------------------- alone on the device

    def _timed(self, case: Case) -> None:
        if not case.spoilt:
            self._step(case, "timed", lambda: self._evaluated(case, self._asked.repeats))

    def _judged(self, wave: Sequence[Case]) -> None:
        """The product's judge on the first kernels of a wave; it leaves the device when it is done."""
        waiting = list(wave)
        while waiting:
            with Judge(self._device, self._scratch / "judge") as judge:
                alarm = threading.Timer(max(1.0, self._until - time.monotonic()), judge.kill)
                alarm.start()
                try:
                    while waiting:
                        case = waiting.pop(0)
                        self._step(case, "judge", lambda case=case: self._checked(case, judge))
                except JudgeDied as died:
                    case.judge, case.detail = "JUDGE DIED", str(died)[:300]
                finally:
                    alarm.cancel()

    def _checked(self, case: Case, judge: Judge) -> None:
        folder = self._scratch / case.name
        try:
            found = judge.check(Check(task=str(folder), tree=str(folder)))
        except (BaselineBroken, UserError) as error:
            case.judge, case.detail = "REFUSED", str(error)[:300]
            return
        case.judge, case.detail = found.outcome.value, found.detail[:300]
        case.worst = max((check.worst for check in found.checks), default=None)


def spoil(folder: Path) -> None:
    """Make the kernel of a task wrong, at the end of its host code."""
    task = load_task(folder)
    source, output = folder / task.spec.source, task.outputs[0].name
    text = source.read_text().rstrip()
    if task.spec.contract == "triton":
        source.write_text(f"{text}\n    {output}.zero_()\n")
        return
    wrong = f"cudaMemsetAsync({output}, 0, 4, stream);" if task.spec.device == "cuda" else f"{output}[0] += 1;"
    source.write_text(f"{text.removesuffix('}')}    {wrong}\n}}\n")


def write(found: Sequence[Case], asked: argparse.Namespace) -> None:
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
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--small", type=int, default=0, help="sizes halved until a launch has so many elements")
    parser.add_argument("--parallel", type=int, default=max(1, min(9, (os.cpu_count() or 1) - 1)))
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="of a case's name")
    asked = parser.parse_args()
    asked.languages = asked.languages or (["triton", "cuda"] if asked.device == "cuda" else ["cpp"])
    asked.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kt-kernelbench-", ignore_cleanup_errors=True) as scratch:
        bench = Bench(asked, Path(scratch))
        bench.carry_out()
    write(bench.cases, asked)
    print((asked.out / "kernelbench-set.txt").read_text())
    return 0 if all(case.agrees and case.done for case in bench.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
