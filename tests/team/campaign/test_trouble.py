"""The disk in trouble during a real campaign: told in one sentence, and the campaign goes on when it is over."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from campaign_bench import Bench, git
from killing import make_bench

from protocol import events as ev

pytestmark = pytest.mark.slow


def _judged(events: list[ev.Event]) -> bool:
    return any(event.body.kind == "experiment_judged" for event in events)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Bench]:
    """A bench whose campaigns lie on a small file system of their own."""
    disk = tmp_path / "home"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system takes rights that this user does not have")
    try:
        bench = make_bench(tmp_path)
        yield bench
        for process in bench.processes():
            with suppress(psutil.Error):
                process.kill()
        bench.gone()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.timeout(900)
def test_a_full_disk_ends_the_campaign_with_its_remedy_and_resume_goes_on(small_disk: Bench) -> None:
    bench = small_disk
    process = bench.start("run", str(bench.task), "--yes", "--experiments", "30", "--agents", "explorer:noop")
    bench.until(_judged)
    filler = bench.home / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while file.write(os.urandom(1 << 16)):
            pass
    acknowledged = bench.events()
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 2, output
    assert "MiB left. Free some space and go on with: kernelteam resume" in output
    assert "Traceback" not in output
    assert bench.gone(60)
    told = bench.call("resume")
    assert (told.returncode, "MiB left" in told.stderr) == (2, True), told.stderr
    filler.unlink()
    bench.start("resume", to=subprocess.DEVNULL)
    bench.until(lambda events: sum(map(_judged, ([event] for event in events[len(acknowledged) :]))) >= 1)
    assert bench.call("stop").returncode == 0
    assert bench.events()[: len(acknowledged)] == acknowledged
    bench.until(lambda events: bool(events) and events[-1].body.kind in ("duty_given", "finished"))


@pytest.mark.timeout(900)
def test_a_main_moved_by_hand_is_put_back_when_the_campaign_goes_on(bench: Bench) -> None:
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "1", "--agents", "explorer:noop")
    assert done.returncode == 0, done.stdout + done.stderr
    hub = bench.run / "hub.git"
    main = git(hub, "rev-parse", "main").strip()
    stray = git(hub, "commit-tree", "main^{tree}", "-p", "main", "-m", "by hand").strip()
    git(hub, "update-ref", "refs/heads/main", stray)
    again = bench.call("resume")
    assert again.returncode == 0, again.stdout + again.stderr
    assert git(hub, "rev-parse", "main").strip() == main
    (said,) = [event.body for event in bench.events() if isinstance(event.body, ev.Mended)]
    assert stray[:12] in said.what[0]
    assert "mended" in again.stdout
