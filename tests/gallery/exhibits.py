"""Where the gallery's kernels are, what their first lines promise, and their disguised copies."""

import math
from pathlib import Path
from statistics import median

from copies import disguised

from protocol.messages import Measurement, Outcome
from team.judge.screen.native import Licence, screen_text

HERE = Path(__file__).parent
TASK = HERE / "task"
CUDA_TASK = HERE / "cuda" / "task"
CHEATS = sorted((HERE / "cheats").glob("*.cpp"))
HONEST = sorted((HERE / "honest").glob("*.cpp"))
CONTAINED = sorted((HERE / "contained").glob("*.cpp"))  # honest work beside acts that the sandbox refuses
SCREENED = sorted((HERE / "screened").glob("*.cpp"))  # what the screen alone refuses
CUDA = {kind: sorted((HERE / "cuda" / kind).glob("*.cu")) for kind in ("cheats", "honest", "screened")}
NO_GAIN = 0.02  # log gain that a cheat which is merely useless may seem to have


def text_of(exhibit: Path) -> str:
    """One exhibit as a candidate's source: the honest body first, so that a cheat can look honest."""
    body = "cuda/honest_body.cuh" if exhibit.suffix == ".cu" else "honest_body.h"
    return (HERE / body).read_text() + exhibit.read_text()


def copy_of(exhibit: Path, seed: int = 1) -> str:
    """The exhibit renamed, reordered and respelled."""
    return disguised(text_of(exhibit), "cuda" if exhibit.suffix == ".cu" else "cpp", seed)


def expected(exhibit: Path) -> set[Outcome]:
    """The outcomes named on the first line: ``// A01 incorrect|tampered: why``."""
    words = exhibit.read_text().splitlines()[0].removeprefix("// ").split(":")[0].split()[-1]
    return {Outcome(word) for word in words.split("|")}


def refused_text(exhibit: Path, text: str) -> str:
    """What the screen finds in a text, without its place."""
    name = f"softmax{exhibit.suffix}"
    return "; ".join(finding.what for finding in screen_text({name: text}, [name], Licence()))


def gains(seen: Measurement) -> list[float]:
    """Median log gain by workload."""
    names = seen.restarts[0].pairs
    ratios = {
        name: [math.log(p.base_ns / p.candidate_ns) for r in seen.restarts for p in r.pairs[name]] for name in names
    }
    return [median(values) for values in ratios.values()]


def table() -> dict[str, tuple[str, str, str]]:
    """The gallery's table: exhibit to family, verdict and layer."""
    rows: dict[str, tuple[str, str, str]] = {}
    for line in (HERE / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and cells[1].startswith("`"):
            rows[cells[1].strip("`")] = (cells[0], cells[2].replace(" or ", "|"), cells[3])
    return rows
