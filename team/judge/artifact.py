"""What was built: bytes in a folder of their own beside the record of their build, published at once or not at all.

What is loaded later are the very bytes that were hashed (see ``sealed_copy``), not a path that may change in between.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from protocol.messages import Build
from team.errors import UserError


@dataclass(frozen=True)
class Library:
    """A trusted shared object that a kernel is linked with, and the hash of its bytes: a runner loads it first."""

    path: Path
    digest: str

    @classmethod
    def of(cls, path: Path) -> "Library":
        """The library as it lies there now."""
        return cls(path, hashlib.sha256(path.read_bytes()).hexdigest())

    def verified_bytes(self) -> bytes:
        """Its bytes, which must be those that the kernel was linked with."""
        data = self.path.read_bytes()
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise UserError(f"{self.path} has changed since a kernel was linked with it.", "Start the judge again.")
        return data


@dataclass(frozen=True)
class Artifact:
    """A built shared object or program: its bytes' place in the cache and the record of its build."""

    path: Path
    build: Build
    libraries: tuple[Library, ...] = ()

    @property
    def listed(self) -> str:
        """Paths of all that is loaded for it, in order, as the standalone programs take them."""
        return ":".join(str(one) for one in (*(library.path for library in self.libraries), self.path))

    def sealed_copy(self) -> int:
        """A file descriptor of a sealed memory file with the artifact's bytes, verified against the manifest."""
        return sealed_memory(self.verified_bytes())

    def verified_bytes(self) -> bytes:
        """The artifact's bytes, verified against the manifest."""
        data = self.path.read_bytes()
        if hashlib.sha256(data).hexdigest() != self.build.artifact:
            raise UserError(
                f"The cached artifact {self.path} does not match its manifest.", "Delete that folder; it is rebuilt."
            )
        return data


def cached(folder: Path) -> Artifact | None:
    """The artifact in ``folder`` when its manifest is there and its bytes still match."""
    path = folder / "artifact"
    try:
        build = Build.model_validate_json((folder / "manifest.json").read_text())
        intact = hashlib.sha256(path.read_bytes()).hexdigest() == build.artifact
    except (OSError, ValueError):
        return None
    return Artifact(path, build.model_copy(update={"cached": True})) if intact else None


def published(folder: Path, artifact: Path, build: Build) -> Artifact:
    """The build, moved to ``folder`` with its record. Of two builders that race, one wins and both agree."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as room:  # on the same disk, for the rename
        staged = Path(room) / "publish"
        staged.mkdir()
        shutil.move(artifact, staged / "artifact")
        (staged / "manifest.json").write_text(build.model_dump_json())
        return _placed(staged, folder) or Artifact(folder / "artifact", build)


def _placed(staged: Path, folder: Path) -> Artifact | None:
    """Move a build to its place, unless another builder's is there, which somebody may be using by now: that one."""
    if (other := cached(folder)) is not None:
        return other
    shutil.rmtree(folder, ignore_errors=True)  # one that is there is damaged
    try:
        staged.rename(folder)
    except OSError:
        if (other := cached(folder)) is None:
            raise
    return other


def sealed_memory(data: bytes) -> int:
    """A file descriptor of a memory file with these bytes that nobody can change any more."""
    descriptor = os.memfd_create("kernelteam-artifact", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(data)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor
