"""``kernelteam flashinfer``: traces of a result, the package's own opinion of it, solutions as folders and back."""

from pathlib import Path
from typing import Annotated

import typer

from team.errors import UserError

app = typer.Typer(help="FlashInfer-Trace: traces, official confirmation, solutions as folders.")

Place = Annotated[Path, typer.Argument(help="a campaign, or a task folder", show_default=False)]


@app.command()
def traces(
    campaign: Annotated[Path, typer.Argument(help="a campaign (name or folder)", show_default=False)],
    data: Annotated[Path, typer.Option("--data", help="the data set that they are added to, with the solution")],
) -> None:
    """Add what the judge measured of a campaign's result to a data set, one trace for each workload."""
    from team.tasks.formats.flashinfer.results import trace_campaign

    found, path = trace_campaign(campaign, data)
    for one in found:
        typer.echo(_told(one))
    typer.echo(f"Added {len(found)} traces to {path}")


@app.command()
def confirm(
    place: Place,
    data: Annotated[
        Path | None, typer.Option("--data", help="the data set that its recorded tensors lie in; default: none")
    ] = None,
    gpu: Annotated[str, typer.Option("--gpu", help="the GPU that it gets, as CUDA counts them")] = "0",
    package: Annotated[
        Path | None,
        typer.Option("--package", help="the folder that flashinfer-bench was installed into; default: with this one"),
    ] = None,
) -> None:
    """Ask the package flashinfer-bench, in a process of its own, what it says of a result; never a reward."""
    from team.tasks.formats.flashinfer.results import confirm_result

    found = confirm_result(place, data, gpu, package)
    for one in found:
        typer.echo(_told(one))
    if any(one.evaluation is None or one.evaluation.status != "PASSED" for one in found):
        raise typer.Exit(1)


@app.command()
def unpack(
    solution: Annotated[Path, typer.Argument(help="a solution's JSON file", show_default=False)],
    into: Annotated[Path, typer.Argument(help="below this folder one of the solution's name is made")] = Path("."),
) -> None:
    """Write a solution's sources into a folder."""
    from team.tasks.formats.flashinfer import packing

    typer.echo(f"Unpacked to {packing.unpack(packing.read_solution(solution), into)}")


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="an unpacked solution", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="the JSON file to write")],
) -> None:
    """Make one JSON file of an unpacked solution again, under a name by its present content."""
    from team.tasks.formats.flashinfer import packing

    if output.exists():
        raise UserError(f"{output} exists.", "Name another file with -o.")
    found = packing.pack_folder(folder)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(packing.solution_text(found))
    typer.echo(f"Wrote {output}: {found.name}")


def _told(trace: object) -> str:
    """One line about one trace."""
    from team.tasks.formats.flashinfer.schema import Trace

    assert isinstance(trace, Trace)
    evaluation = trace.evaluation
    if evaluation is None:
        return f"{trace.workload.uuid}: not evaluated"
    timed = evaluation.performance
    times = f", {timed.latency_ms:.4f} ms" if timed else ""
    ratio = f", {timed.speedup_factor:.2f} times the reference" if timed and timed.speedup_factor else ""
    return f"{trace.workload.uuid}: {evaluation.status}{times}{ratio}"
