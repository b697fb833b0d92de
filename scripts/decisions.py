"""Trials of decision protocols, counted until there are enough, and added to a result file. Used by bench_decisions.py.

A trial says whether its candidate is kept, and after how many pairs. In an A/A trial the candidate is its base; in a
planted one the base does ``GAIN`` more work.
"""

import fcntl
import json
import os
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GAIN = 0.02
TRIALS = {"aa": 400, "planted": 100}
REST = 0.15  # share of the seconds that the simpler protocols get in any case,
SHARES = {"events": 0.4, "clock": 0.4, "do_bench": 0.35, "sequence": 0.25}  # of what the judge leaves them
Trial = Callable[[bool], tuple[bool, int]]
Record = dict[str, Any]


@dataclass(frozen=True)
class Protocols:
    """One size, ready: facts about it, the judge's trial, the simpler protocols' trials, what to do after each."""

    facts: Record
    judge: Trial
    simple: dict[str, Trial]
    after: Callable[[int], None] = lambda done: None


def one_number(measure: Callable[[Callable[[], None]], float], plain: Any, heavy: Any, threshold: float) -> Trial:
    """A trial of a protocol that has one number for each side, and keeps when base / candidate >= 1 + threshold."""
    measure(plain)

    def trial(planted: bool) -> tuple[bool, int]:
        base = measure(heavy if planted else plain)
        return base / measure(plain) >= 1.0 + threshold, 1

    return trial


def counted(trial: Trial, seconds: float, before: Record, after: Callable[[int], None]) -> Record:
    """``before`` and the trials that ``seconds`` allow, A/A and planted mixed, until there are enough of both."""
    names = {
        "aa": ("aa trials", "false keeps", "mean pairs aa"),
        "planted": ("planted trials", "found", "mean pairs planted"),
    }
    done = {kind: int(before.get(names[kind][0], 0)) for kind in TRIALS}
    kept = {kind: int(before.get(names[kind][1], 0)) for kind in TRIALS}
    pairs = {kind: done[kind] * float(before.get(names[kind][2], 0.0)) for kind in TRIALS}
    spent = sum(done.values()) * float(before.get("ms per trial", 0.0)) * 1e-3
    started, dice = time.perf_counter(), random.Random()
    while time.perf_counter() - started < seconds:
        left = {kind: TRIALS[kind] - done[kind] for kind in TRIALS if done[kind] < TRIALS[kind]}
        if not left:
            break
        kind = dice.choices(list(left), list(left.values()))[0]
        keep, used = trial(kind == "planted")
        kept[kind] += keep
        done[kind] += 1
        pairs[kind] += used
        after(sum(done.values()))
    spent += time.perf_counter() - started
    record: Record = {}
    for kind, (trials, keeps, mean) in names.items():
        record |= {trials: done[kind], keeps: kept[kind], mean: pairs[kind] / max(1, done[kind])}
    return record | {"ms per trial": 1e3 * spent / max(1, sum(done.values()))}


def all_protocols(ready: Protocols, until: float, seconds: float, before: Record) -> Record:
    """The judge first; the simpler protocols have what it leaves, and ``REST`` of ``seconds`` at least."""
    record = dict(ready.facts)
    record["judge"] = counted(
        ready.judge, until - REST * seconds - time.perf_counter(), before.get("judge", {}), ready.after
    )
    print(f"judge: {json.dumps(record['judge'])}", flush=True)
    left = until - time.perf_counter()
    for name, trial in ready.simple.items():
        record[name] = counted(trial, SHARES[name] * left, before.get(name, {}), lambda done: None)
        print(f"{name}: {json.dumps(record[name])}", flush=True)
    return record


def known(path: Path, name: str) -> Record:
    """What the result file holds of one size."""
    return json.loads(path.read_text())["sizes"].get(name, {}) if path.exists() else {}


def keep(path: Path, hardware: Record, name: str, record: Record) -> None:
    """Put one size's record into the result file, which other processes may be writing too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = json.loads(path.read_text()) if path.exists() else {"sizes": {}}
        whole["hardware"] = hardware
        whole["sizes"][name] = record
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(whole, indent=1) + "\n")
        draft.replace(path)
    Path(lock.name).unlink(missing_ok=True)


def circumstances(device: str, seconds: float) -> Record:
    """When, where and under what load one run was made."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    load = round(os.getloadavg()[0], 1)
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return {"at": at, "commit": commit.stdout.strip(), "device": device, "seconds": seconds, "load before": load}
