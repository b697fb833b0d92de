"""What one GPU can really do, measured once per device and kept by UUID: see ``team.judge.cuda.roofs``.

They decide the roofline floor, so no name table can stand in for them.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from team.runs import home


def known_peaks(uuid: str) -> dict[str, float]:
    """Peaks measured earlier on this device; empty when there are none."""
    try:
        kept = json.loads(_path(uuid).read_text())
        return {str(name): float(value) for name, value in kept.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def keep_peaks(uuid: str, peaks: Mapping[str, float]) -> None:
    """Keep what was measured."""
    path = _path(uuid)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(dict(peaks)))
    fresh.replace(path)


def _path(uuid: str) -> Path:
    return home() / "peaks" / f"{uuid}.json"
