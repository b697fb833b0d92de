"""Requests to a campaign as files: left by any process, taken in by the coordinator in the order in which they came.

A file appears whole or not at all and stays until what it asks for is in the ledger, so a request is lost with no
process that dies.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from protocol.steering import Request

log = logging.getLogger(__name__)
_SUFFIX = ".json"


@dataclass(frozen=True)
class Inbox:
    """The folder in which requests wait."""

    folder: Path

    def leave(self, request: Request) -> None:
        """Leave a request behind those that wait already."""
        self.folder.mkdir(exist_ok=True)
        fresh = self.folder / f".{secrets.token_hex(8)}"
        fresh.write_text(request.model_dump_json())
        fresh.rename(self.folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}")

    def void(self, stands: Callable[[Request], bool]) -> None:
        """Remove the requests that do not stand any more."""
        for path, request in self.waiting():
            if not stands(request):
                path.unlink(missing_ok=True)

    def waiting(self) -> Iterator[tuple[Path, Request]]:
        """Requests that nobody has taken in yet, oldest first. Whoever has done so removes the file."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            try:
                yield path, Request.model_validate_json(path.read_text())
            except ValidationError as error:
                log.warning("%s is no request and is set aside: %s", path, error)
                path.rename(path.with_suffix(".refused"))
