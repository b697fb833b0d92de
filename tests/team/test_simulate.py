"""The simulator's script: it plays, tells what happened, and plays the same again from the same seed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def play(seed: int) -> list[str]:
    command = [sys.executable, str(ROOT / "scripts" / "simulate.py"), "--campaigns", "2", "--seed", str(seed)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_same_seed_plays_the_same_campaigns() -> None:
    first, again = play(11), play(11)
    assert "every invariant held" in first[0]
    assert first[0].split(":", 1)[1] == again[0].split(":", 1)[1]
    assert first[1:] == again[1:]
    assert first[2].startswith("digest: ")


def test_a_landing_while_main_is_measured_does_not_count_into_its_product() -> None:
    """Seed 10 lands a step between the duty to measure main and its report; the audit compares the product."""
    assert "every invariant held" in play(10)[0]
