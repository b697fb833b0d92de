"""``kernelteam export``: a result written back in the format that its task was imported from."""

import tempfile
from pathlib import Path

from team.bench import tree_of
from team.errors import UserError
from team.tasks.formats.kernelbench.export import exported
from team.tasks.formats.kernelbench.judged import Judged
from team.tasks.task import load_reference, load_task


def export(place: Path, output: Path) -> Path:
    """Write the result of ``place``, a campaign or a task folder, to ``output``, which must not exist yet."""
    if output.exists():
        raise UserError(f"{output} exists.", "Name another file with -o.")
    if (place / "task.toml").is_file():
        text = exported_text(place, place)
    else:
        with tempfile.TemporaryDirectory(prefix="kernelteam-export-") as scratch:
            text = exported_text(*tree_of("result", Path("."), place, Path(scratch)))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    return output


def exported_text(trusted: Path, tree: Path) -> str:
    """The file of the format that the task in ``trusted`` has, with the kernel in ``tree``."""
    task = load_task(trusted)
    judged = getattr(load_reference(trusted / task.spec.reference), "_judged", None)
    if isinstance(judged, Judged):
        return exported(task, judged, tree)
    raise UserError(
        f"Task {task.spec.name} was not imported from another format.", "Its result is the kernel file itself."
    )
