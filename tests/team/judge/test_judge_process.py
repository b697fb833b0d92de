"""The judge as a process: when it dies or is closed, nothing of it goes on."""

import threading
from pathlib import Path

import psutil
import pytest
from judge_processes import command_of, runners_of
from tasks_on_disk import ONCE, write_task

from team.devices.cpu import cpu_devices
from team.judge.client import Judge
from team.judge.failures import JudgeDied
from team.judge.request import Check


def test_a_dead_judge_takes_its_runners_along(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", "    for (volatile int go = 1; go;) {}\n")
    judge = Judge(cpu_devices(1)[0], tmp_path / "scratch")
    judge.start()
    seen: list[psutil.Process] = []

    def kill_when_running() -> None:
        while not seen:
            seen.extend(process for process in runners_of(judge) if "artifact" in " ".join(command_of(process)))
        judge.kill()

    assassin = threading.Thread(target=kill_when_running)
    assassin.start()
    with pytest.raises(JudgeDied):
        judge.check(Check(task=str(task), tree=str(task)))
    assassin.join()
    _, alive = psutil.wait_procs(seen, timeout=5)
    assert not alive
    judge.close()
    assert not any((tmp_path / "scratch" / "work").iterdir())


def test_closing_leaves_no_process_and_no_work(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", ONCE)
    with Judge(cpu_devices(1)[0], tmp_path / "scratch") as judge:
        judge.check(Check(task=str(task), tree=str(task)))
        assert not runners_of(judge)
        assert judge.pid is not None
        process = psutil.Process(judge.pid)
    assert not process.is_running()
    assert not any((tmp_path / "scratch" / "work").iterdir())
    assert not any((tmp_path / "scratch" / "empty").iterdir())
