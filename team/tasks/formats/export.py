"""``kernelteam export``: a result written back in the format that its task was imported from."""

import tempfile
from pathlib import Path

from team.bench import tree_of
from team.errors import UserError
from team.runs import find_run
from team.tasks.formats.flashinfer.packing import is_imported, pack, solution_text, write_contest
from team.tasks.formats.gpu_mode.export import exported as exported_submission
from team.tasks.formats.gpu_mode.judged import Judged as JudgedSubmission
from team.tasks.formats.kernelbench.export import exported
from team.tasks.formats.kernelbench.judged import Judged
from team.tasks.task import load_reference, load_task
from team.workspace.hub import Hub


def export(place: Path, output: Path) -> Path:
    """Write the result of ``place``, a campaign or a task folder, to ``output``, which must not exist yet."""
    if output.exists():
        raise UserError(f"{output} exists.", "Name another file with -o.")
    if is_task(place):
        _write(place, place, output)
    else:
        with tempfile.TemporaryDirectory(prefix="kernelteam-export-") as scratch:
            _write(*tree_of("result", Path("."), place, Path(scratch)), output)
    return output


def is_task(place: Path) -> bool:
    """Whether ``place`` is a task folder, not a campaign."""
    return (place / "task.toml").is_file()


def remark_on(place: Path) -> str:
    """What is to be said about the result of ``place`` beside that it was written; mostly nothing."""
    if is_task(place):
        return ""
    hub = Hub.open(find_run(place).folder)
    return "Nothing has landed in this campaign: its result is the kernel that it began with." * (
        hub.main == hub.baseline
    )


def artifact(trusted: Path, tree: Path) -> tuple[str, str]:
    """A file's name and text in the format that the task was imported from."""
    return "solution.json" if is_imported(trusted) else "submission.py", exported_text(trusted, tree)


def _write(trusted: Path, tree: Path, output: Path) -> None:
    """One file; of a FlashInfer-Trace task, the contest's layout where ``output`` has no suffix."""
    if is_imported(trusted) and not output.suffix:
        write_contest(pack(trusted, tree), output)
        return
    text = exported_text(trusted, tree)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)


def exported_text(trusted: Path, tree: Path) -> str:
    """The file of the format that the task in ``trusted`` has, with the kernel in ``tree``."""
    if is_imported(trusted):
        return solution_text(pack(trusted, tree))
    task = load_task(trusted)
    judged = getattr(load_reference(trusted / task.spec.reference), "_judged", None)
    if isinstance(judged, Judged):
        return exported(task, judged, tree)
    if isinstance(judged, JudgedSubmission):
        return exported_submission(task, judged, tree)
    raise UserError(
        f"Task {task.spec.name} was not imported from another format.", "Its result is the kernel file itself."
    )
