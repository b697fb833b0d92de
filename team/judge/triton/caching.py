"""Triton's cache for one compilation in a folder of its own: nobody else writes there, so a file is written in place.

Triton's own manager moves files between folders, which the sandbox of the first Landlock version does not permit.
"""

from pathlib import Path

from triton.runtime.cache import FileCacheManager


class PlainCache(FileCacheManager):
    """As Triton's, without the detour over a temporary folder."""

    def put(self, data: str | bytes, filename: str, binary: bool = True) -> str:
        """Write one file; its path."""
        path = Path(self._make_path(filename))
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)
