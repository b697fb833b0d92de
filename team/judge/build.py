"""From source text to a shared object whose hash is known: judge-owned flags, equal on both sides, content-addressed.

Trusted: the compiler, its flags, the cache and its manifests. Not trusted: the source, and therefore the artifact; what
is loaded later are the very bytes that were hashed (see ``sealed_copy``), never a path that could change in between.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from protocol.messages import Build
from team.errors import UserError
from team.judge.failures import BuildFailed, Foreign

CPU_FLAGS = ("-O3", "-march=native")
SHAPE_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-fopenmp", "-Wl,--as-needed")
APPROXIMATE_FLAGS = ("-ffast-math",)
REMARK_FLAGS = ("-fopt-info-vec",)
_EXCERPT = 4000  # characters of compiler output kept for the mind that has to repair it
_ALONE = threading.Lock()
_INSTALL = {
    "g++": "Install it: apt-get install g++",
    "nvcc": "Install the CUDA toolkit and put its bin folder on the PATH.",
}
_SYSTEM = ("/usr/", "/lib/", "/opt/")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides an artifact: files by relative path, the one to compile, flags, and the time allowed."""

    files: Mapping[str, str]
    main: str
    flags: tuple[str, ...]
    timeout_s: float = 120.0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Artifact:
    """A built shared object or program: its bytes' place in the cache and the record of its build."""

    path: Path
    build: Build

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


def kernel_flags(numerics: str, override: tuple[str, ...] | None) -> tuple[str, ...]:
    """The judge's flags for a C++ kernel; only 'approximate' numerics permit fast-math."""
    chosen = CPU_FLAGS if override is None else override
    return (*chosen, *SHAPE_FLAGS, *(APPROXIMATE_FLAGS if numerics == "approximate" else ()))


def sealed_memory(data: bytes) -> int:
    """A file descriptor of a memory file with these bytes that nobody can change any more."""
    descriptor = os.memfd_create("kernelteam-artifact", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(data)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def vectoriser_remarks(output: str) -> tuple[str, ...]:
    """What g++ said about its loops."""
    return tuple(line for line in output.splitlines() if "optimized:" in line or "missed:" in line)[:40]


class Builder:
    """Compiles recipes into ``cache``; ``work`` holds temporary folders and may be deleted at any time."""

    def __init__(
        self,
        cache: Path,
        work: Path,
        compiler: str = "g++",
        remarks_of: Callable[[str], tuple[str, ...]] = vectoriser_remarks,
    ) -> None:
        self._cache = cache
        self._work = work
        self._compiler = compiler
        self._remarks_of = remarks_of
        for folder in (cache, work):
            folder.mkdir(parents=True, exist_ok=True)

    def build(self, recipe: Recipe) -> Artifact:
        """The artifact of ``recipe``, from the cache when it is there and intact."""
        folder = self._cache / self._key(recipe)
        known = _cached(folder)
        if known is not None:
            return known
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self._work) as temporary:
            room = Path(temporary)
            output = self._compile(recipe, room)
            return self._store(folder, room / "artifact", recipe, output, time.monotonic() - started)

    def _key(self, recipe: Recipe) -> str:
        identity = compiler_identity(self._compiler)
        parts: list[Any] = [sorted(recipe.files.items()), recipe.main, recipe.flags, identity, cpu_identity()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def _compile(self, recipe: Recipe, room: Path) -> str:
        """Run the compiler in ``room``; its output, or ``BuildFailed`` with an excerpt of it."""
        sources = room / "sources"
        for name, text in recipe.files.items():
            path = sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [self._compiler, *recipe.flags, "-I.", "-MMD", "-MF", "../deps", recipe.main, "-o", "../artifact"]
        status, output = _run(command, sources, recipe.timeout_s)
        if status != 0 and _starved(status, output):
            with _ALONE:  # once more, with no other compiler of this process beside it
                status, output = _run(command, sources, recipe.timeout_s)
        output = output.replace(f"{sources}/", "")
        if status != 0:
            raise BuildFailed(f"{self._compiler} refused {recipe.main} (exit status {status}).", _excerpt(output))
        _refuse_foreign(room / "deps", sources)
        return output

    def _store(self, folder: Path, artifact: Path, recipe: Recipe, output: str, seconds: float) -> Artifact:
        """Publish a finished build atomically; of two builders that race, one wins and both agree."""
        build = Build(
            compiler=compiler_identity(self._compiler),
            flags=recipe.flags,
            seconds=seconds,
            artifact=hashlib.sha256(artifact.read_bytes()).hexdigest(),
            remarks=(*recipe.remarks, *self._remarks_of(output)),
        )
        staged = artifact.parent / "publish"
        staged.mkdir()
        artifact.rename(staged / "artifact")
        (staged / "manifest.json").write_text(build.model_dump_json())
        if folder.exists():  # damaged, or another builder's: ours is equally good
            shutil.rmtree(folder, ignore_errors=True)
        try:
            staged.rename(folder)
        except OSError:
            other = _cached(folder)
            if other is None:
                raise
            return other
        return Artifact(folder / "artifact", build)


@cache
def compiler_identity(compiler: str) -> str:
    """The compiler's telling line of ``--version``; a missing compiler is a ``UserError``."""
    if shutil.which(compiler) is None:
        raise UserError(
            f"There is no compiler '{compiler}' on this machine.", _INSTALL.get(compiler, f"Install {compiler}.")
        )
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=False)
    lines = done.stdout.splitlines() or [compiler]
    return next((line for line in lines if "release" in line), lines[0])


@cache
def cpu_identity() -> str:
    """Hash of the CPU's model and feature flags, since ``-march=native`` depends on them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    keep = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return hashlib.sha256("\n".join(sorted(keep)).encode()).hexdigest()[:16]


def _cached(folder: Path) -> Artifact | None:
    """The artifact in ``folder`` when its manifest is there and its bytes still match."""
    path = folder / "artifact"
    try:
        build = Build.model_validate_json((folder / "manifest.json").read_text())
        intact = hashlib.sha256(path.read_bytes()).hexdigest() == build.artifact
    except (OSError, ValueError):
        return None
    return Artifact(path, build.model_copy(update={"cached": True})) if intact else None


def _run(command: list[str], folder: Path, timeout_s: float) -> tuple[int, str]:
    """Run a compiler in a process group of its own; kill the whole group when it takes too long."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": str(folder.parent)}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise BuildFailed(f"The compiler needed more than {timeout_s:g} s and was killed.") from None
        return process.returncode, output


def _starved(status: int, output: str) -> bool:
    """Whether a compiler ended for want of memory: killed from outside, or by its own account."""
    said = output.lower()
    return (
        status in (-signal.SIGKILL, 128 + signal.SIGKILL) or "out of memory" in said or "died due to signal 9" in said
    )


def _excerpt(output: str) -> str:
    """The first errors: what comes later mostly follows from them."""
    return output if len(output) <= _EXCERPT else output[:_EXCERPT] + "\n[...]"


def _refuse_foreign(listing: Path, sources: Path) -> None:
    """Refuse a build that read a file which is neither among its sources nor a system header."""
    words = listing.read_text().replace("\\\n", " ").split()[1:]
    for word in words:
        path = (sources / word).resolve()
        if not path.is_relative_to(sources.resolve()) and not str(path).startswith(_SYSTEM):
            raise Foreign(f"the source includes {word}, which is not part of the task")
