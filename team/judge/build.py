"""From source text to a shared object whose hash is known: judge-owned flags, equal on both sides, content-addressed.

Trusted: the compiler, its flags, the cache and its manifests. Not trusted: the source, and therefore the artifact; what
is loaded later are the very bytes that were hashed (see ``sealed_copy``), never a path that could change in between.
"""

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from protocol.messages import Build
from team.errors import UserError
from team.judge.artifact import Artifact, Library, cached, published
from team.judge.compiler import Compiled, Crossing, confined, run_compiler
from team.judge.failures import BuildFailed, Foreign
from team.judge.timeline import TIMELINE
from team.runs import home

CPU_FLAGS = ("-O3", "-march=native")
# No unique symbols: they would be one for all kernels of a process, and a screening loads several into one.
SHAPE_FLAGS = ("-std=c++17", "-fPIC", "-fno-gnu-unique", "-shared", "-fopenmp", "-Wl,--as-needed")
APPROXIMATE_FLAGS = ("-ffast-math",)
_EXCERPT = 4000  # characters of compiler output kept for the mind that has to repair it
_CROSSING = Crossing()
_WARDEN = Path(__file__).parent / "runner"
_INSTALL = {
    "g++": "Install it: apt-get install g++",
    "nvcc": "Install the CUDA toolkit and put its bin folder on the PATH.",
}
_SYSTEM = ("/usr/", "/lib/", "/opt/")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides an artifact: files by relative path, the one to compile, flags, and the time allowed.

    ``inspection`` is the identity of the rules under which the preprocessed text must be looked at; empty for none.
    What is ``ours``, a program of the judge's own, is kept for all judges of this user.
    """

    files: Mapping[str, str]
    main: str
    flags: tuple[str, ...]
    timeout_s: float = 120.0
    remarks: tuple[str, ...] = ()
    inspection: str = ""
    libraries: tuple[Library, ...] = ()
    ours: bool = False

    @property
    def includes(self) -> tuple[str, ...]:
        """Folders of headers that the flags name, and of libraries: not the candidate chose them, wherever they lie."""
        headers = [str(Path(flag[2:]).resolve()) for flag in self.flags if flag.startswith("-I/")]
        return (*headers, *(str(library.path.parent) for library in self.libraries))


def kernel_flags(numerics: str, override: tuple[str, ...] | None) -> tuple[str, ...]:
    """The judge's flags for a C++ kernel; only 'approximate' numerics permit fast-math."""
    chosen = CPU_FLAGS if override is None else override
    return (*chosen, *SHAPE_FLAGS, *(APPROXIMATE_FLAGS if numerics == "approximate" else ()))


def vectoriser_remarks(output: str) -> tuple[str, ...]:
    """What g++ said about its loops."""
    return tuple(line for line in output.splitlines() if "optimized:" in line or "missed:" in line)[:40]


class Builder:
    """Compiles recipes into ``cache``; ``work`` holds temporary folders and may be deleted at any time.

    ``schedule`` makes a shell script of what the compiler says that it would do, where that is faster.
    """

    def __init__(
        self,
        cache: Path,
        work: Path,
        compiler: str = "g++",
        remarks_of: Callable[[str], tuple[str, ...]] = vectoriser_remarks,
        confine: bool = True,
        schedule: Callable[[str, Mapping[str, str]], str | None] | None = None,
    ) -> None:
        self._confine = confine
        self._schedule = schedule
        self._cache = cache
        self._work = work
        self._compiler = compiler
        self._remarks_of = remarks_of
        for folder in (cache, work):
            folder.mkdir(parents=True, exist_ok=True)

    def build(self, recipe: Recipe, inspect: Callable[[str], None] = lambda _: None) -> Artifact:
        """The artifact of ``recipe``, from the cache when it is there and intact.

        ``inspect`` gets the preprocessed text, raises when it must not be used, and goes by ``recipe.inspection``.
        """
        return replace(self._built(recipe, inspect), libraries=recipe.libraries)

    def _built(self, recipe: Recipe, inspect: Callable[[str], None]) -> Artifact:
        folder = (home() / "programs" if recipe.ours else self._cache) / self._key(recipe)
        known = cached(folder)
        if known is not None:
            return known
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self._work) as temporary:
            room = Path(temporary)
            with TIMELINE.stage("compile", f"{self._compiler} {recipe.main}"):
                output = self._compile(recipe, room)
            if recipe.inspection:
                with TIMELINE.stage("screen expanded"):
                    inspect(_expanded(room))
            return self._store(folder, room / "artifact", recipe, output, time.monotonic() - started)

    def _key(self, recipe: Recipe) -> str:
        compilers = [self._compiler] if self._compiler == "g++" or not shutil.which("g++") else [self._compiler, "g++"]
        identity = [*map(compiler_identity, compilers), cpu_identity(), recipe.inspection]
        linked = [library.digest for library in recipe.libraries]
        parts: list[Any] = [sorted(recipe.files.items()), recipe.main, recipe.flags, identity, linked]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def _compile(self, recipe: Recipe, room: Path) -> str:
        """Run the compiler in ``room``; its output, or ``BuildFailed`` with an excerpt of it."""
        sources = room / "sources"
        for name, text in recipe.files.items():
            path = sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        keep = self._keep_expanded(room) if recipe.inspection else []
        command = [self._compiler, *recipe.flags, *keep, "-I.", "-MMD", "-MF", "../deps", recipe.main]
        command += ["-o", "../artifact"]
        if self._schedule is not None and keep:
            command = self._scheduled(self._schedule, command, recipe, room)
        done = self._run(command, room, recipe)
        output = done.output.replace(f"{sources}/", "")
        if done.status != 0:
            raise BuildFailed(f"{self._compiler} refused {recipe.main} (exit status {done.status}).", _excerpt(output))
        _refuse_foreign(room, sources, recipe.includes)
        return output

    def _scheduled(
        self,
        schedule: Callable[[str, Mapping[str, str]], str | None],
        command: list[str],
        recipe: Recipe,
        room: Path,
    ) -> list[str]:
        """The command that runs the compiler's own steps as ``schedule`` arranges them, or ``command`` itself."""
        told = run_compiler([*command, "--dryrun"], room / "sources", recipe.timeout_s)
        steps = schedule(told.output, recipe.files) if told.status == 0 else None
        if steps is None:
            return command
        (room / "steps.sh").write_text(steps)
        return ["sh", "../steps.sh"]

    def _run(self, command: list[str], room: Path, recipe: Recipe) -> Compiled:
        """Run the compiler; one that ends for want of memory gets a second chance with nobody beside it."""
        if self._confine:
            command = confined(command, self._warden(), room, self._compiler, recipe.includes)
        with _CROSSING.shared():
            done = run_compiler(command, room / "sources", recipe.timeout_s)
        if done.starved:
            with _CROSSING.alone():
                done = run_compiler(command, room / "sources", recipe.timeout_s)
        return done

    def _warden(self) -> Path:
        """The program that confines compilers; it is built without itself, from trusted text."""
        files = {name: (_WARDEN / name).read_text() for name in ("confine.cpp", "sandbox.h")}
        recipe = Recipe(files, "confine.cpp", ("-O1", "-std=c++17"), ours=True)
        return Builder(self._cache, self._work, confine=False).build(recipe).path

    def _keep_expanded(self, room: Path) -> list[str]:
        """Options that leave the preprocessed text in ``room``."""
        if self._compiler != "nvcc":
            return ["-save-temps=obj"]
        (room / "expanded").mkdir()
        return ["--keep", "--keep-dir", "../expanded"]

    def _store(self, folder: Path, artifact: Path, recipe: Recipe, output: str, seconds: float) -> Artifact:
        """Keep a finished build with its record."""
        build = Build(
            compiler=compiler_identity(self._compiler),
            flags=recipe.flags,
            seconds=seconds,
            artifact=hashlib.sha256(artifact.read_bytes()).hexdigest(),
            remarks=(*recipe.remarks, *self._remarks_of(output)),
        )
        return published(folder, artifact, build)


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


def _expanded(room: Path) -> str:
    """What the preprocessor made of the source: once on a CPU, for host and device under nvcc."""
    found = sorted([*room.glob("artifact-*.ii"), *room.glob("expanded/*.ii")])
    if not found:
        raise UserError("The compiler left no preprocessed text to look at.", "Take -pipe out of build.flags.")
    return "\n".join(path.read_text(errors="replace") for path in found)


def _excerpt(output: str) -> str:
    """The first errors: what comes later mostly follows from them."""
    return output if len(output) <= _EXCERPT else output[:_EXCERPT] + "\n[...]"


def _refuse_foreign(room: Path, sources: Path, includes: tuple[str, ...]) -> None:
    """Refuse a build that read a file which is neither among its sources, nor in ``includes``, nor a system header."""
    listings = [path.read_text().replace("\\\n", " ").partition(":")[2] for path in room.glob("deps*")]
    if not listings:
        raise UserError("The compiler did not say which files it read.", "Take -M options out of build.flags.")
    for word in " ".join(listings).split():
        path = (sources / word).resolve()
        ours = any(path.is_relative_to(place) for place in (sources.resolve(), *includes))
        if not ours and not str(path).startswith(_SYSTEM):
            raise Foreign(f"the source includes {word}, which is not part of the task")
