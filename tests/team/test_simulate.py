"""The simulator's script: it plays, tells what happened, and plays the same again from the same seed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def play(seed: int) -> list[str]:
    command = [sys.executable, str(ROOT / "scripts" / "simulate.py"), "--campaigns", "2", "--seed", str(seed)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_same_seed_plays_the_same_campaigns() -> None:
    """Seed 10 lands a step between the duty to measure main and its report; the audit compares the product."""
    first, again = play(10), play(10)
    assert "every invariant held" in first[0]
    assert first[0].split(":", 1)[1] == again[0].split(":", 1)[1]
    assert first[1:] == again[1:]
    assert first[2].startswith("digest: ")
