"""``kernelteam init`` with a problem in somebody else's format: make a task of it."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

from team.errors import UserError
from team.tasks.first_kernel.given import language_of_kernel
from team.tasks.first_kernel.writing import Language
from team.tasks.formats.flashinfer.intake import import_file, notes_of
from team.tasks.formats.function import Named, problem_text
from team.tasks.formats.gpu_mode import problem as gpu_mode
from team.tasks.formats.gpu_mode.importing import import_problem as import_gpu_mode
from team.tasks.formats.kernelbench.importing import import_problem
from team.tasks.formats.kernelbench.problem import Precision, read_problem
from team.tasks.formats.recognised import is_gpu_mode


def import_foreign(
    path: Path, folder: Path | None, language: str, precision: str, sizes: Mapping[str, int], own: Path | None = None
) -> tuple[Path, tuple[str, ...]]:
    """The folder of the new task, and what is to be said about it. ``own``: a kernel in the place of a first one."""
    if own and (path.suffix == ".json" or is_gpu_mode(path)):
        raise UserError(
            "A kernel of one's own is taken for a KernelBench problem or a function.",
            "Leave out --kernel, and write over the kernel of the task that is made.",
        )
    if path.suffix == ".json":
        if (language, precision) != ("triton", "fp32"):
            raise UserError(
                "A FlashInfer-Trace task is in its solution's language, else in Triton, in its definition's dtypes.",
                "Leave that option out.",
            )
        imported = import_file(path, folder, sizes)
        return imported.folder, notes_of(imported)
    wanted, kind = _language(language, own), cast(Precision, _one_of("--precision", precision, get_args(Precision)))
    if is_gpu_mode(path):
        if sizes or kind != "fp32":
            told = "A GPU MODE problem has its sizes in task.yml and its types in its own code."
            raise UserError(told, "Leave out --dim and --precision.")
        problem = gpu_mode.read_problem(path)
        made = import_gpu_mode(problem, (folder or Path(f"{problem.folder.resolve().name}-task")).resolve(), wanted)
    else:
        target = (folder or path.with_suffix("")).resolve()
        made = import_problem(read_problem(path, kind, sizes), target, wanted, own)
    return made.folder, made.notes


def import_function(
    named: Named,
    folder: Path | None,
    example: str,
    language: str,
    precision: str,
    sizes: Mapping[str, int],
    own: Path | None = None,
) -> tuple[Path, tuple[str, ...]]:
    """As ``import_foreign``, of a PyTorch function and example inputs."""
    wanted, kind = _language(language, own), cast(Precision, _one_of("--precision", precision, get_args(Precision)))
    target = (folder or named.file.with_name(named.function)).resolve()
    with tempfile.TemporaryDirectory(prefix="kernelteam-function-") as scratch:
        path = Path(scratch) / f"{named.function}.py"
        path.write_text(problem_text(named, example, sizes))
        made = import_problem(read_problem(path, kind, sizes), target, wanted, own)
    return made.folder, made.notes


def _language(given: str, own: Path | None) -> Language:
    """What is asked for, or what a person's own kernel is written in."""
    wanted = cast(Language, _one_of("--language", given, get_args(Language)))
    if own is None:
        return wanted
    if wanted not in ("triton", language_of_kernel(own)):
        raise UserError(f"{own.name} is not in {wanted}.", "Leave out --language.")
    return language_of_kernel(own)


def _one_of(option: str, given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise UserError(f"{option} has no '{given}'.", f"It has: {', '.join(known)}.")
    return given
