"""Prints what NVIDIA's own module reads in a report, as JSON; run by path: it loads a native library of the profiler.

usage: python reader.py FOLDER_OF_NCU_REPORT_PY REPORT
"""

import json
import sys
from typing import Any


def launches(module: Any, path: str) -> list[dict[str, Any]]:
    """Every launch of a report: name, grid, block, and the numbers among its metrics with their units."""
    context = module.load_report(path)
    found: list[dict[str, Any]] = []
    for at in range(context.num_ranges()):
        profiled = context.range_by_idx(at)
        found += [launch(module, profiled.action_by_idx(one)) for one in range(profiled.num_actions())]
    return found


def launch(module: Any, action: Any) -> dict[str, Any]:
    """One launch."""
    values: dict[str, tuple[float, str]] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = metric.value()
        if "__" in name and isinstance(value, int | float) and not isinstance(value, bool):
            values[name] = (float(value), str(metric.unit() or ""))
    return {
        "name": action.name(module.IAction.NameBase_DEMANGLED),
        "grid": shape(values, "grid"),
        "block": shape(values, "block"),
        "values": values,
    }


def shape(values: dict[str, tuple[float, str]], of: str) -> str:
    """Extents of a grid or block, as the profiler's own pages show them; empty where the report lacks them."""
    names = [f"launch__{of}_dim_{axis}" for axis in "xyz"]
    return f"({', '.join(str(int(values[name][0])) for name in names)})" if all(n in values for n in names) else ""


def main() -> None:
    """Read one report."""
    sys.path.insert(0, sys.argv[1])
    import ncu_report  # type: ignore[import-not-found]

    json.dump(launches(ncu_report, sys.argv[2]), sys.stdout)


if __name__ == "__main__":
    main()
