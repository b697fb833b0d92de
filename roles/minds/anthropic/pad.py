"""The task's files as a model sees and changes them: in memory, each change by exact replacement."""

from collections.abc import Mapping
from pathlib import Path

MAX_LINES = 400
_MAX_BYTES = 1 << 20


class Wrong(Exception):
    """What a model asked of the pad cannot be done; the text tells it why."""


class Pad:
    """Editable files as texts, and everything else in the task's folder for reading."""

    def __init__(self, texts: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
        self._base = dict(before or texts)
        self.texts = dict(texts)

    @property
    def changed(self) -> dict[str, str]:
        """Files that are not as they were."""
        return {path: text for path, text in self.texts.items() if text != self._base.get(path)}

    def read(self, path: str, folder: Path, first: int = 1) -> str:
        """Numbered lines of a file, at most ``MAX_LINES`` from line ``first`` on."""
        lines = self._text(path, folder).splitlines()
        part = lines[first - 1 : first - 1 + MAX_LINES]
        if first < 1 or not part:
            raise Wrong(f"{path} has {len(lines)} lines; line {first} is none of them")
        left = len(lines) - (first - 1 + len(part))
        more = f"\n... {left} more lines" if left else ""
        return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(part, first)) + more

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace the one place where ``old`` stands; how the file looks there now."""
        if path not in self.texts:
            raise Wrong(f"{path} is not editable; editable are: {', '.join(sorted(self.texts))}")
        times = self.texts[path].count(old) if old else 0
        if times != 1:
            raise Wrong(f"`old` stands {times} times in {path}, and must stand there once")
        at = self.texts[path].index(old)
        self.texts[path] = self.texts[path].replace(old, new, 1)
        line = self.texts[path].count("\n", 0, at) + 1
        return f"{path} is changed from line {line} on ({len(self.texts[path].splitlines())} lines now)"

    def _text(self, path: str, folder: Path) -> str:
        if path in self.texts:
            return self.texts[path]
        place = (folder / path).resolve()
        if not place.is_relative_to(folder.resolve()) or not place.is_file():
            there = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
            raise Wrong(f"there is no {path}; there are: {', '.join(there)}")
        if place.stat().st_size > _MAX_BYTES:
            raise Wrong(f"{path} is too long to be read")
        return place.read_text(errors="replace")
