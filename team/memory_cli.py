"""``kernelteam memory``: look at the strategy memory, take it elsewhere, or make it forget."""

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="What earlier campaigns taught about techniques: list, show, export, forget.")

Operator = Annotated[str | None, typer.Option("--operator", help="of this operator only")]
Technique = Annotated[str | None, typer.Option("--technique", help="of this technique only")]
Campaign = Annotated[str | None, typer.Option("--campaign", help="of this campaign only")]


@app.command(name="list")
def list_advice(operator: Operator = None) -> None:
    """What is advised for which operator, hardware and shapes."""
    from team.memory import StrategyMemory
    from team.report.memory_view import advice_table

    _print(advice_table(StrategyMemory().find(**_wanted(operator=operator))))


@app.command()
def show(operator: Operator = None, technique: Technique = None, campaign: Campaign = None) -> None:
    """The evidence behind the advice."""
    from team.memory import StrategyMemory
    from team.report.memory_view import evidence_list

    wanted = _wanted(operator=operator, technique=technique, campaign=campaign)
    _print(evidence_list(StrategyMemory().find(**wanted)))


@app.command()
def export(file: Annotated[Path, typer.Argument(help="where to write the JSON", show_default=False)]) -> None:
    """Write everything to a JSON file."""
    from team.errors import UserError
    from team.memory import StrategyMemory

    try:
        file.write_text(StrategyMemory().export() + "\n")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}.", "Name another file.") from None
    typer.echo(f"Written: {file}")


@app.command()
def forget(
    operator: Operator = None,
    technique: Technique = None,
    campaign: Campaign = None,
    everything: Annotated[bool, typer.Option("--all", help="everything")] = False,
) -> None:
    """Delete evidence for good; a campaign that taught it does not teach it again."""
    from team.errors import UserError
    from team.memory import StrategyMemory

    wanted = _wanted(operator=operator, technique=technique, campaign=campaign)
    if everything == bool(wanted):
        raise UserError("It is not clear what to forget.", "Name --operator, --technique or --campaign, or say --all.")
    typer.echo(f"Forgotten: {StrategyMemory().forget(**wanted)} pieces of evidence")


def _wanted(**named: str | None) -> dict[str, str]:
    return {name: value for name, value in named.items() if value is not None}


def _print(renderable: object) -> None:
    from rich.console import Console

    Console(highlight=False, width=None if sys.stdout.isatty() else 180).print(renderable)
