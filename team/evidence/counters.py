"""Whether ``perf stat`` may count on this machine, and what it says. Whoever conducts asks: nothing heavy is loaded."""

import shutil
import subprocess
from functools import cache

_PERF_S = 20.0


@cache
def missing_counters() -> str:
    """Why ``perf stat`` counts nothing here, in one sentence; empty where it does."""
    perf = shutil.which("perf")
    if perf is None:
        return "perf is not installed, so compiler remarks stand in for counters"
    command = [perf, "stat", "-x", ",", "-e", "cycles:u", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PERF_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "perf does not run here, so compiler remarks stand in for counters"
    if counted(done.stderr).get("cycles"):
        return ""
    said = " ".join(done.stderr.split())
    why = "not supported by this machine" if "<not supported>" in said else "not permitted"
    return f"perf stat counts nothing here (cycles are {why}), so compiler remarks stand in for counters"


def counted(output: str) -> dict[str, float]:
    """Event -> count from ``perf stat -x ,``; what was not counted is left out."""
    found: dict[str, float] = {}
    for line in output.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[0].replace(".", "", 1).isdigit():
            found[fields[2].partition(":")[0]] = float(fields[0])
    return found
