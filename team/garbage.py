"""How often Python's cycle collector runs in processes that hold many live records."""

import gc

_THRESHOLDS = (100_000, 20, 50)


def collect_seldom() -> None:
    """Collect after 100,000 new containers instead of 700.

    A folded campaign is a million live objects with hardly a cycle among them: with Python's defaults the collector
    took a third of ``status`` and a quarter of a busy coordinator's time (``scripts/bench_coordinator.py``).
    """
    gc.set_threshold(*_THRESHOLDS)


def settle() -> None:
    """Collect once, then leave what lives now out of every later collection.

    Without this each full collection walks the whole state, which only grows.
    """
    gc.collect()
    gc.freeze()
