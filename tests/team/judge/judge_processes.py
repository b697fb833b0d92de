"""What runs below a judge."""

import psutil

from team.judge.client import Judge


def runners_of(judge: Judge) -> list[psutil.Process]:
    return [] if judge.pid is None else psutil.Process(judge.pid).children(recursive=True)


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
