"""One case of ``scripts/bench_kernelbench_set.py`` in a process of its own, told and asked over a pipe.

It is imported and exported at once; evaluated when the device may be used; and timed when it is told to, alone. What it
says: ``made`` (why not, or ``MADE``), ``script`` (a result), ``ready`` when only the times are left, ``timed``.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from fast_p import Result  # noqa: E402
from kernelbench_cases import MADE, SET, Case  # noqa: E402
from kernelbench_eval import Rules, evaluate  # noqa: E402

from team.errors import UserError  # noqa: E402
from team.tasks.formats.entry import import_foreign  # noqa: E402
from team.tasks.formats.export import export  # noqa: E402
from team.tasks.formats.kernelbench.importing import small_sizes  # noqa: E402
from team.tasks.formats.kernelbench.problem import read_problem  # noqa: E402
from team.tasks.task import load_task  # noqa: E402


class Turns(Protocol):
    """What the children of one run share: how many work side by side, and whether the device may be used."""

    places: Any
    device: Any


def live(case: Case, folder: Path, asked: argparse.Namespace, turns: Turns, line: Connection) -> None:
    """All of one case. An error of the case's own is its result; this process reports and ends."""
    os.setsid()
    log = (folder.parent / f"{case.name}.log").open("w")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    begun = time.monotonic()
    if asked.device == "cuda":
        torch.set_num_threads(1)  # there is a process for every core

    def say(what: str, body: Any) -> None:
        line.send((what, body, round(time.monotonic() - begun, 1)))

    turns.places.acquire()
    try:
        dims = small_sizes(read_problem(SET / f"{case.problem}.py"), asked.small) if asked.small else {}
        solution = _made(case, folder, asked.precision, dims)
        say("made", MADE)
        turns.device.wait()
        rules = Rules(
            asked.device, asked.precision, 5, 0 if case.spoilt else asked.repeats, dims,
            not (asked.no_compile or case.spoilt), asked.each,
        )  # fmt: skip
        result = evaluate(SET / f"{case.problem}.py", solution, rules, _waiting(say, turns, line))
        say("timed" if result.repeats else "script", asdict(result))
    except UserError as error:
        say("made", str(error))
    finally:
        turns.places.release()


def _made(case: Case, folder: Path, precision: str, dims: dict[str, int]) -> Path:
    """The user's way: a task with a first kernel, and one ModelNew of it."""
    import_foreign(SET / f"{case.problem}.py", folder, case.language, precision, dims)
    if case.spoilt:
        spoil(folder)
    return export(folder, folder.with_name(f"{case.name}.py"))


def _waiting(say: Callable[[str, Any], None], turns: Turns, line: Connection) -> Callable[[Result], None]:
    """Say what is known, and wait to be timed; meanwhile another may work."""

    def wait(known: Result) -> None:
        say("ready", asdict(known))
        turns.places.release()
        try:
            line.recv()
        finally:
            turns.places.acquire()

    return wait


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
