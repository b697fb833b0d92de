"""Whether the coordinator's work per event grows with its ledger: function calls per event, early and late.

    python scripts/coordinator_calls.py [--agents 1000] [--first 12000] [--events 98000] [--window 12000] [--json FILE]

``scripts/bench_coordinator.py`` measures seconds, which swing with the machine's pace by more than the growth that is
looked for. This counts instead: the same campaign under cProfile, which sees every call of a Python or a C function, in
a window after the baselines and in the last one. Equal numbers mean that no rule walks over what the campaign has
gathered; what a single C call takes (a snapshot, a slice) is not seen, so the seconds under the profiler are told, too.
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from bench_coordinator import Agents, Lead, first_event, play  # noqa: E402

from protocol import events as ev  # noqa: E402
from protocol.ledger import Ledger, row_of  # noqa: E402
from team import garbage  # noqa: E402

CALLERS = 128
GROWN = 0.05  # calls per event by which a function must have grown to be named

Function = tuple[str, int, str]


async def counted(lead: Lead, begin: int, end: int) -> dict[Function, tuple[float, float]]:
    """Calls and microseconds per event of every function, between two events."""
    state = lead.coordination.state
    while state.last_seq < begin:
        await asyncio.sleep(0.01)
    profile, first = cProfile.Profile(), state.last_seq
    profile.enable()
    while state.last_seq < end:
        await asyncio.sleep(0.01)
    profile.disable()
    events = state.last_seq - first
    seen: Any = pstats.Stats(profile)
    return {name: (row[1] / events, 1e6 * row[2] / events) for name, row in seen.stats.items()}


def told(early: dict[Function, tuple[float, float]], late: dict[Function, tuple[float, float]]) -> dict[str, Any]:
    """Both windows in sum, and the functions that are called more often in the late one."""
    nothing = (0.0, 0.0)
    grown = {name: late[name][0] - early.get(name, nothing)[0] for name in late}
    named = sorted((name for name in grown if grown[name] > GROWN), key=lambda name: -grown[name])
    return {
        "calls per event": [round(sum(row[0] for row in window.values()), 1) for window in (early, late)],
        "us per event under the profiler": [round(sum(row[1] for row in window.values())) for window in (early, late)],
        "called more often": {
            f"{Path(name[0]).name}:{name[2]}": [round(early.get(name, nothing)[0], 2), round(late[name][0], 2)]
            for name in named
        },
    }


async def campaign(path: Path, asked: argparse.Namespace) -> dict[str, Any]:
    lead, window = Lead(path), asked.window
    both = [(asked.first, asked.first + window), (asked.events - window, asked.events)]
    work = asyncio.create_task(play(lead, Agents(1), asked.agents, asked.events + 100, CALLERS))
    early, late = [await counted(lead, begin, end) for begin, end in both]
    await work
    lead.ledger.close()
    return {"windows": both, **told(early, late)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--first", type=int, default=12_000, help="where the early window begins")
    parser.add_argument("--events", type=int, default=98_000)
    parser.add_argument("--window", type=int, default=12_000)
    parser.add_argument("--json", type=Path, help="write the result here, too")
    asked = parser.parse_args()
    garbage.collect_seldom()
    with tempfile.TemporaryDirectory(prefix="kt-calls-", dir=Path.home()) as name:
        path = Path(name) / "ledger.sqlite"
        with Ledger(path, writer=True) as ledger:
            ledger.store([row_of(ev.Event(seq=1, time=time.time(), agent="", body=first_event(asked.agents)))])
        found = json.dumps({"agents": asked.agents, **asyncio.run(campaign(path, asked))}, indent=1)
    print(found)
    if asked.json:
        asked.json.write_text(f"{found}\n")


if __name__ == "__main__":
    main()
