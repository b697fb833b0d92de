"""The whole fast suite runs in two processes where pytest-xdist is installed and two cores are free.

What judges speed or looks at the clock has the machine to itself: it comes last, all of it in one process, and waits
until the other process has done its part. ``pytest -n 0`` runs everything in one process, and so does naming a file.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WORKERS = 2  # a judge pins its runners to one core and works on another, so more would only wait for each other
ALONE = (
    "tests/gallery/test_gallery_timed.py",
    "tests/team/campaign/",
    "tests/team/judge/test_cpu_roofs.py",
    "tests/team/judge/test_cuda_loop.py",
    "tests/team/judge/test_held_out_shapes.py",
    "tests/team/judge/test_judge.py",
    "tests/team/judge/test_sift.py",
    "tests/team/judge/test_unlisted.py",
    "tests/team/optimize/test_optimize_command.py",
    "tests/team/optimize/test_skill_defects.py",
    "tests/team/test_profile_command.py",
)


def alone(test: str) -> bool:
    """Whether nothing may run beside a test of this id."""
    return test.startswith(ALONE)


def _whole_fast_suite(config: pytest.Config) -> bool:
    named_nothing = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return named_nothing and config.option.markexpr in config.getini("addopts")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """As if ``-n 2`` stood on the command line, where nothing there says otherwise."""
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    option, cores = config.option, len(os.sched_getaffinity(0))
    chosen = option.numprocesses is not None or option.dist != "no" or option.usepdb
    if cores >= WORKERS and not chosen and _whole_fast_suite(config):
        option.numprocesses = WORKERS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """A file is one piece of work, for its fixtures; so is everything that runs alone. In the collection's order."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "alone" if alone(nodeid) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return Files(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stable, so that files and their tests keep their order."""
    items.sort(key=lambda item: alone(item.nodeid))


@contextmanager
def machine(test: str, lock: Path = Path(__file__)) -> Iterator[None]:
    """Shared by what may run side by side. This file is the lock, so two runs in one checkout respect each other."""
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX if alone(test) else fcntl.LOCK_SH)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)  # whatever a test has forked may hold the file open


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Around everything, so that no timeout counts the waiting."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with machine(item.nodeid):
        return (yield)
