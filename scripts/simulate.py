"""Play many campaigns of the real coordination core in virtual time, with faults, and audit every event.

    python scripts/simulate.py [--campaigns 2000] [--seed 0] [--faults 60]

Campaign ``n`` is played with seed ``--seed`` + n alone, so a failure is played again with ``--campaigns 1 --seed S``.
The agents, devices and faults are those of ``tests/team/simulated.py``, the invariants of ``tests/team/audit.py``.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "team")]

from simulated import Temper, World  # noqa: E402

from protocol.policy import Policy  # noqa: E402


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
        "zombie": (0.5, world.zombie_asks),
        "coordinator killed": (0.5, world.restart_coordinator),
        "killed between git and ledger": (0.5, lambda: world.tick(crash=True)),
        "clock step": (0.2, lambda: world.tick(dice.choice((-3600.0, 3600.0)))),
        "stop": (0.05, world.stop),
        "all killed and resumed": (0.2, world.resume),
    }


def play(seed: int, steps: int, told: Counter[str]) -> World:
    """One campaign: ``steps`` random events, then undisturbed to its end. Raises when an invariant breaks."""
    dice = random.Random(seed)
    policy = Policy(max_experiments=dice.randint(1, 30), looks=(8, 16, 32), round_experiments=dice.randint(2, 8))
    world = World(seed, dice.randint(1, 4), policy)
    for agent in world.agents.values():
        agent.temper = dice.choice((*get_args(Temper), "able", "able", "able"))
    for _ in range(steps):
        deeds = faults(world, dice)
        what = dice.choices(list(deeds), [weight for weight, _ in deeds.values()])[0]
        deeds[what][1]()
        told[what] += 1
        world.check()
    world.run_to_the_end()
    return world


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=60, metavar="STEPS", help="random steps before the quiet end")
    asked = parser.parse_args()
    told: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    begun = time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.campaigns):
        try:
            world = play(seed, asked.faults, told)
        except AssertionError as broken:
            print(f"seed {seed}: {broken}")
            raise
        state = world.coordination.state
        sums.update(events=world.audit.seq, experiments=len(state.judged), lost=state.lost, landed=len(state.landed))
        world.close()
    took = time.monotonic() - begun
    print(f"{asked.campaigns} campaigns in {took:.0f} s, every invariant held:", dict(sums))
    print("what happened:", dict(told.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
