"""Where the judge keeps what it built, by the hash that its record names."""

import json
from pathlib import Path


def artifact_of(cache: Path, digest: str) -> Path | None:
    """The built file with this hash; None when the cache does not hold it any more."""
    for manifest in cache.glob("*/manifest.json"):
        if json.loads(manifest.read_text()).get("artifact") == digest:
            return manifest.with_name("artifact")
    return None
