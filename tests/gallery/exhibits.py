"""Where the gallery's kernels are, and what their first lines promise."""

from pathlib import Path

from protocol.messages import Outcome

HERE = Path(__file__).parent
TASK = HERE / "task"
CHEATS = sorted((HERE / "cheats").glob("*.cpp"))
HONEST = sorted((HERE / "honest").glob("*.cpp"))
CONTAINED = sorted((HERE / "contained").glob("*.cpp"))  # honest work beside acts that the sandbox refuses


def text_of(exhibit: Path) -> str:
    """One exhibit as a candidate's source: the honest body first, so that a cheat can look honest."""
    return (HERE / "honest_body.h").read_text() + exhibit.read_text()


def expected(exhibit: Path) -> set[Outcome]:
    """The outcomes named on the first line: ``// A01 incorrect|tampered: why``."""
    words = exhibit.read_text().splitlines()[0].removeprefix("// ").split(":")[0].split()[-1]
    return {Outcome(word) for word in words.split("|")}
