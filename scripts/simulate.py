"""Play many campaigns of the real coordination core in virtual time, with faults, and audit every event.

    python scripts/simulate.py [--campaigns 2000] [--seed 0] [--faults 60] [--agents 0] [--processes 2] [--json FILE]

Campaign ``n`` is played with seed ``--seed`` + n alone, so a failure is played again with ``--campaigns 1 --seed S``:
the digest over its events is the same. ``--agents`` asks for teams of that size instead of one to six. Agents, devices
and faults are those of ``tests/team/simulated.py``, the invariants of ``tests/team/audit.py``; the noise is that of
``scripts/noise_models.py``, most of it recorded on an H200.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "team"), str(ROOT / "scripts")]

from noise_models import models  # noqa: E402
from simulated import Accident, Device, Temper, World  # noqa: E402

from protocol.policy import Policy  # noqa: E402


@dataclass(frozen=True)
class Played:
    """What became of one campaign: what happened to it, what it holds, and a digest over its events."""

    seed: int
    deeds: Counter[str]
    sums: Counter[str]
    digest: str
    broken: str = ""


def faults(world: World, dice: random.Random) -> dict[str, tuple[float, Callable[[], object]]]:
    """What may happen between two steps of an agent: its weight and the deed."""
    name = dice.choice(list(world.agents))
    return {
        "work": (20.0, lambda: world.step(name)),
        "time": (10.0, lambda: world.tick(dice.choice((0.2, 1.0, 60.0)))),
        "death": (0.5, lambda: world.die(name, noticed=True)),
        "unnoticed death": (0.5, lambda: world.die(name, noticed=False)),
        "restart": (0.5, lambda: world.join(name)),
        "late report": (0.5, lambda: world.report_too_late(name)),
        "repeated report": (1.0, world.replay),
        "delayed report": (1.0, lambda: world.delay(name)),
        "delayed reports in any order": (1.0, world.deliver),
        "zombie": (0.5, world.zombie_asks),
        "coordinator killed": (0.5, world.restart_coordinator),
        "killed in a call": (0.5, lambda: setattr(world, "accident", dice.choice(get_args(Accident)))),
        "killed between git and ledger": (0.5, lambda: world.tick(crash=True)),
        "snapshot": (0.5, world.snapshot),
        "clock step": (0.2, lambda: world.tick(dice.choice((-3600.0, 3600.0)))),
        "stop": (0.05, world.stop),
        "direction by hand": (0.5, lambda: world.steer("direct")),
        "pause": (0.1, lambda: world.steer("pause")),
        "goes on": (0.4, lambda: world.steer("resume")),
        "rounds ended by hand": (0.05, lambda: world.steer("end-rounds")),
        "wrap-up": (0.02, lambda: world.steer("wrap-up")),
        "all killed and resumed": (0.2, world.resume),
    }


def world_of(seed: int, agents: int) -> World:
    """A team, its law, its devices' noise and its members' tempers, all from the seed."""
    dice = random.Random(seed)
    size = agents or dice.choice((1, 2, 2, 3, 3, 4, 4, 6))
    money = {"max_dollars": dice.choice((0.5, 2.0)), "duty_share": 0.1} if dice.random() < 0.3 else {}
    policy = Policy(
        max_experiments=3 * agents or dice.randint(1, dice.choice((8, 8, 8, 30))),
        looks=(8, 16, 32),
        round_experiments=agents or dice.randint(2, 8),
        **money,
    )
    name, model = dice.choice([(name, model) for name, model in models().items() if not name.startswith("[")])
    world = World(seed, size, policy, Device(name, model, seed))
    for agent in world.agents.values():
        agent.temper = dice.choice((*get_args(Temper), "able", "able", "able"))
    return world


def play(seed: int, steps: int, agents: int) -> Played:
    """One campaign: ``steps`` random events, then undisturbed to its end. ``broken``: what did not hold."""
    deeds: Counter[str] = Counter()
    world = world_of(seed, agents)
    dice = random.Random(seed)
    broken = ""
    try:
        for _ in range(steps):
            possible = faults(world, dice)
            what = dice.choices(list(possible), [weight for weight, _ in possible.values()])[0]
            possible[what][1]()
            deeds[what] += 1
            world.check()
        world.run_to_the_end()
    except AssertionError as error:
        broken = f"{error}"[:300] or "an assertion without words"
    state = world.coordination.state
    sums = Counter(
        events=world.audit.seq, experiments=len(state.verdicts), lost=state.lost, landed=len(state.landed),
        searches=len(state.searches), rounds=state.rounds,
    )  # fmt: skip
    digest = digest_of(world)
    world.close()
    return Played(seed, deeds, sums, digest, broken)


def digest_of(world: World) -> str:
    """A digest over every event: the same campaign has the same, to the last bit."""
    seen = blake2b(digest_size=8)
    for event in world.ledger.events():
        seen.update(f"{event.seq} {event.time!r} {event.agent} {event.body.model_dump_json()}".encode())
    return seen.hexdigest()


def played(asked: argparse.Namespace) -> Iterator[Played]:
    """All campaigns in the order of their seeds, several at a time."""
    seeds = range(asked.seed, asked.seed + asked.campaigns)
    one = partial(play, steps=asked.faults, agents=asked.agents)
    if asked.processes == 1 or asked.campaigns == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        yield from pool.imap(one, seeds, chunksize=4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=60, metavar="STEPS", help="random steps before the quiet end")
    parser.add_argument("--agents", type=int, default=0, help="agents of every team (0: one to six)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the result here, too")
    asked = parser.parse_args()
    deeds: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    whole = blake2b(digest_size=8)
    failed: list[Played] = []
    begun = time.monotonic()
    for one in played(asked):
        deeds.update(one.deeds)
        sums.update(one.sums)
        whole.update(one.digest.encode())
        if one.broken:
            failed.append(one)
            print(f"seed {one.seed}: {one.broken}", flush=True)
    took = time.monotonic() - begun
    held = f"{len(failed)} broke an invariant" if failed else "every invariant held"
    print(f"{asked.campaigns} campaigns in {took:.0f} s, {held}:", dict(sums))
    print("what happened:", dict(deeds.most_common()))
    print("digest:", whole.hexdigest())
    if asked.json:
        result = {
            "command": f"python scripts/simulate.py --campaigns {asked.campaigns} --seed {asked.seed} "
            f"--faults {asked.faults} --agents {asked.agents}",
            "campaigns": asked.campaigns, "seconds": round(took), "processes": asked.processes,
            "broken": {one.seed: one.broken for one in failed}, "sums": dict(sums),
            "what happened": dict(deeds.most_common()), "digest": whole.hexdigest(),
        }  # fmt: skip
        asked.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
