"""The command line. Each command is a few lines that call a room; heavy imports happen inside them."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer

from protocol.trouble import LedgerTrouble
from team.errors import UserError
from team.garbage import collect_seldom
from team.memory_cli import app as memory
from team.optimize.command import CONTEXT, optimize
from team.tasks.formats.flashinfer.commands import app as flashinfer

app = typer.Typer(
    help="A team of agents that makes a CUDA, Triton or C++ kernel faster and proves it.",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(memory, name="memory")
app.add_typer(flashinfer, name="flashinfer")
app.command(name="optimize", context_settings=CONTEXT)(optimize)

TaskArgument = Annotated[Path, typer.Argument(help="folder that holds task.toml", show_default=False)]
RunOption = Annotated[Path | None, typer.Option("--run", help="campaign (name or folder); default: the newest")]
RunArgument = Annotated[Path | None, typer.Argument(help="campaign (name or folder); default: the newest")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="start without asking")]
AgentsOption = Annotated[
    str | None, typer.Option("--agents", help="a number, or roles with minds: explorer:catalog,exploiter:catalog")
]
ExperimentsOption = Annotated[int | None, typer.Option("--experiments", min=1, help="budget: experiments of the team")]
MinutesOption = Annotated[float | None, typer.Option("--minutes", help="budget: wall clock (minutes)")]
_PIPE_WIDTH = 180
# UsageError of click, or of the copy of click that newer releases of typer carry.
_WrongUsage = cast(type[typer.BadParameter], typer.BadParameter.__bases__[0])


def main() -> None:
    """Entry point: whatever the user can mend is one sentence and exit status 2, never a box or a traceback."""
    collect_seldom()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them reads every package's metadata
    try:
        status = app(args=sys.argv[1:] or ["--help"], prog_name="kernelteam", standalone_mode=False)
    except _WrongUsage as error:
        command = error.ctx.command_path if error.ctx else "kernelteam"
        print(f"kernelteam: {_sentence(error.format_message())} See: {command} --help", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    except typer.Abort:
        print("kernelteam: nothing was started", file=sys.stderr)  # noqa: T201
        raise SystemExit(130) from None
    except UserError as error:
        print(f"kernelteam: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    except LedgerTrouble as error:
        print(f"kernelteam: {error}. {error.remedy}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("kernelteam: ended at once; go on with: kernelteam resume", file=sys.stderr)  # noqa: T201
        raise SystemExit(130) from None
    raise SystemExit(status)


def _sentence(text: str) -> str:
    said = " ".join(text.split())
    return said if said.endswith((".", "?", "!")) else f"{said}."


@app.command()
def run(
    task: TaskArgument,
    agents: AgentsOption = None,
    experiments: ExperimentsOption = None,
    minutes: MinutesOption = None,
    campaign: Annotated[Path | None, typer.Option("--campaign", help="campaign.toml with team and law")] = None,
    hardware: Annotated[
        Path | None, typer.Option("--hardware", help="TOML file on the hardware; default: detected")
    ] = None,
    address: Annotated[str | None, typer.Option("--address", help="a running Ray cluster, e.g. auto")] = None,
    seed: Annotated[int, typer.Option("--seed", help="seed of the minds (never of the judge)")] = 0,
    submit_result: Annotated[bool, typer.Option("--submit", help="submit the result when the campaign ends")] = False,
    compile_jobs: Annotated[str, typer.Option("--compile-jobs", help="compilations side by side, or auto")] = "auto",
    yes: Yes = False,
) -> None:
    """Run a campaign on TASK until its budget is spent or you stop it."""
    from team.guardian import guard

    guard()
    from team.console import start
    from team.scope import scope_of

    scope = scope_of(task, agents, experiments, minutes, campaign, seed, hardware, compile_jobs)
    _leave(start(replace(scope, submit=submit_result), yes, address))


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="which example")] = "matmul_cpu",
    into: Annotated[Path | None, typer.Option("--into", help="new folder; default: ./NAME")] = None,
    experiments: ExperimentsOption = None,
    agents: AgentsOption = None,
) -> None:
    """Copy an example into a new git repository and run it."""
    from team.guardian import guard

    guard()
    from team.console import start
    from team.scope import scope_of
    from team.tasks.examples import copy_example

    folder = copy_example(name, into or Path(name))
    typer.echo(f"Copied {name} to {folder}")
    _leave(start(scope_of(folder, agents, experiments, None, None, 0), True, None))


@app.command()
def resume(campaign: RunArgument = None, address: Annotated[str | None, typer.Option("--address")] = None) -> None:
    """Go on with a campaign that was paused, stopped or killed."""
    from team.runs import find_run

    found = find_run(campaign)
    if found.is_driven():
        from team.steering import unpause

        typer.echo(unpause(found))
        return
    from team.guardian import guard

    guard()
    from team.console import go

    _leave(go(found, address, resume=True))


@app.command()
def stop(campaign: RunArgument = None) -> None:
    """Ask a running campaign to finish what runs and end."""
    from team import steering
    from team.runs import find_run

    typer.echo(steering.stop(find_run(campaign)))


@app.command()
def pause(campaign: RunArgument = None) -> None:
    """Ask a running campaign to finish what runs and wait; it goes on with: kernelteam resume."""
    from team import steering
    from team.runs import find_run

    typer.echo(steering.pause(find_run(campaign)))


@app.command()
def direct(
    agent: Annotated[str, typer.Argument(help="its name, as status shows it")],
    words: Annotated[str, typer.Argument(help="what to try, in words; never code")],
    categories: Annotated[str, typer.Option("--categories", help="what it may touch, e.g. memory,fusion")] = "",
    run: RunOption = None,
) -> None:
    """Give an agent of a campaign a direction."""
    from team import steering
    from team.runs import find_run

    wanted = tuple(name.strip() for name in categories.split(",") if name.strip())
    typer.echo(steering.direct(find_run(run), agent, words, wanted))


@app.command(name="end-rounds")
def end_rounds(campaign: RunArgument = None) -> None:
    """Ask a campaign to end its rounds: from then on every agent works by itself on main."""
    from team import steering
    from team.runs import find_run

    typer.echo(steering.end_rounds(find_run(campaign)))


@app.command(name="wrap-up")
def wrap_up(campaign: RunArgument = None) -> None:
    """Ask a campaign to finish what runs, end, and submit its result."""
    from team import steering
    from team.runs import find_run

    typer.echo(steering.wrap_up(find_run(campaign)))


@app.command()
def status(campaign: RunArgument = None, as_json: AsJson = False) -> None:
    """Where a campaign stands; works while it runs and after it died."""
    from team.report.status import status as status_of
    from team.runs import find_run

    found = status_of(find_run(campaign).folder)
    if as_json:
        typer.echo(_as_json(found))
    else:
        from team.report.status_view import render_status

        _print(render_status(found))


@app.command()
def log(campaign: RunArgument = None, as_json: AsJson = False) -> None:
    """Every experiment, with its numbers and its reason."""
    from team.report.log import log_lines, log_rows
    from team.runs import find_run

    rows = log_rows(find_run(campaign).folder)
    if as_json:
        typer.echo(_as_json(rows))
    else:
        _print(log_lines(rows))


@app.command()
def watch(campaign: RunArgument = None) -> None:
    """Follow a campaign that runs elsewhere."""
    from team.console import watch_elsewhere
    from team.runs import find_run

    watch_elsewhere(find_run(campaign))


@app.command()
def report(
    campaign: RunArgument = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="where to write the HTML file")] = None,
) -> None:
    """Write the report: one HTML file with chart, tables and reasons."""
    from team.console import report_path
    from team.runs import find_run

    typer.echo(str(report_path(find_run(campaign), output)))


@app.command()
def submit(
    campaign: RunArgument = None,
    tag: Annotated[str | None, typer.Option("--tag", help="branch autodev/TAG; default: the campaign's name")] = None,
    into: Annotated[str, typer.Option("--into", help="a branch to move forward to the result as well")] = "",
    push: Annotated[bool, typer.Option("--push", help="push branch and tag to your repository's remote")] = False,
) -> None:
    """Judge the result again from a clean clone and bring it to your repository as branch autodev/TAG, tagged.

    Your checkout stays as it is. A submission that was broken off goes on where it stopped.
    """
    from team.runs import find_run
    from team.submission import submit_run

    typer.echo(submit_run(find_run(campaign), tag, into, push, typer.echo))


@app.command(name="export")
def export_result(
    place: Annotated[Path, typer.Argument(help="a campaign, or a task folder")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="the file to write; without suffix: the layout of FlashInfer's contest"),
    ],
) -> None:
    """Write a result back in its task's format: a ModelNew, a GPU MODE submission, a FlashInfer-Trace solution."""
    from team.tasks.formats.export import export, remark_on

    typer.echo(f"Wrote {export(place, output)}")
    if remark := remark_on(place):
        typer.echo(remark)


@app.command()
def ablate(
    campaign: RunArgument = None,
    minutes: Annotated[float, typer.Option("--minutes", min=0.1, help="no further one is begun after this")] = 10.0,
) -> None:
    """Measure a finished campaign's result without each of its landings: which of them it owes its speed to."""
    from team.attribution import ablate_run
    from team.runs import find_run

    typer.echo(ablate_run(find_run(campaign), minutes, typer.echo))


@app.command(name="eval")
def evaluate(
    tasks: Annotated[list[Path], typer.Argument(help="folders that hold task.toml", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="time it without the noise floor: much sooner")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the kernel of each TASK once, as it stands in the folder: build, correctness, times."""
    from contextlib import closing

    from team.standing import Refused, standings

    refused = 0
    with closing(standings(tasks, quick)) as kernels:
        for found in kernels:
            if as_json:
                typer.echo(_as_json(found.as_json(), indent=None))
            elif not isinstance(found, Refused):
                _print(found.render())
            elif len(tasks) == 1:
                raise found.error
            else:
                typer.echo(f"{found.folder.name}: {found.error}")
            refused += isinstance(found, Refused)
    if refused:
        _leave(2)


@app.command()
def check(
    task: TaskArgument,
    build_for: Annotated[
        str, typer.Option("--build-for", help="build the kernel, too, for a GPU that may be elsewhere: 90a for an H200")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with TASK before it is measured: wrong answers that would pass, shapes that hide work."""
    from dataclasses import asdict

    from team.tasks.vetting.vetting import vet

    found = vet(task)
    if build_for:
        from team.tasks.vetting.building import vet_build

        vet_build(task, build_for, found)
    if as_json:
        typer.echo(_as_json(asdict(found)))
    else:
        for line in (*found.notes, *map(str, found.findings)):
            typer.echo(line)
        typer.echo(f"{task}: {len(found.findings) or 'no'} finding{'' if len(found.findings) == 1 else 's'}")
    _leave(1 if found.findings else 0)


@app.command()
def ab(
    a: Annotated[str, typer.Argument(help="base: a commit, branch, or folder")],
    b: Annotated[str, typer.Argument(help="candidate: a commit, branch, or folder")],
    task: Annotated[Path, typer.Option("--task", help="folder that holds task.toml")] = Path("."),
    run: RunOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare B with A by the same paired measurement that judges experiments.

    In a campaign (--run), 'base' and 'result' name its baseline and its main.
    """
    from team.bench import compare_commits

    found = compare_commits(a, b, task, run)
    if as_json:
        typer.echo(_as_json(found.as_json()))
    else:
        _print(found.render())


@app.command()
def profile(
    commit: Annotated[str, typer.Argument(help="a commit, branch, or folder; 'base' or 'result' of a campaign")],
    task: Annotated[Path, typer.Option("--task", help="folder that holds task.toml")] = Path("."),
    run: RunOption = None,
    workload: Annotated[str, typer.Option("--workload", help="whose call is profiled; default: what counts most")] = "",
    ncu_num: Annotated[int, typer.Option("--ncu-num", min=1, help="metrics shown per axis")] = 5,
    as_json: AsJson = False,
) -> None:
    """Say where a kernel stands: position, top metrics per axis, distance to the roofline, machine code."""
    from team.profiling import profile_commit
    from team.report.profile_view import render_profile

    found = profile_commit(commit, task, run, workload, ncu_num)
    if as_json:
        typer.echo(_as_json(found.as_json()))
    else:
        _print(render_profile(found.report, found.device))


@app.command()
def init(
    kernel: Annotated[
        Path,
        typer.Argument(
            help="a kernel with solve(...), a Triton file with run_kernel, a KernelBench or GPU MODE problem, "
            "a FlashInfer-Trace definition or solution, or a PyTorch function as FILE.py:FUNCTION"
        ),
    ],
    folder: Annotated[Path | None, typer.Option("--folder", help="where the task is made; default: beside it")] = None,
    dim: Annotated[list[str] | None, typer.Option("--dim", help="a dimension, e.g. --dim M=256")] = None,
    shape: Annotated[list[str] | None, typer.Option("--shape", help="extents of a pointer: --shape A=M,K")] = None,
    scalar: Annotated[list[str] | None, typer.Option("--scalar", help="a float parameter: --scalar eps=1e-5")] = None,
    language: Annotated[
        str, typer.Option("--language", help="of a problem's first kernel: triton, cuda, cpp")
    ] = "triton",
    precision: Annotated[str, typer.Option("--precision", help="of a problem: fp32, fp16 or bf16")] = "fp32",
    example: Annotated[
        str, typer.Option("--example", help="inputs of a function: --example 'torch.randn(rows, 64), 0.5'")
    ] = "",
    own: Annotated[
        Path | None, typer.Option("--kernel", help="your kernel of a problem or function: .cu, .cpp, or Triton's .py")
    ] = None,
) -> None:
    """Make a task from a kernel file, a PyTorch function, or a problem in a format that is known."""
    from team.scope import dims_of, scalars_of, shapes_of
    from team.tasks.formats.function import named_function
    from team.tasks.formats.recognised import is_foreign

    named = named_function(kernel)
    if example and not named:
        raise UserError(f"{kernel} says its own inputs.", "Leave out --example.")
    if named or is_foreign(kernel):
        from team.tasks.formats.entry import import_foreign, import_function

        if shape or scalar:
            raise UserError("A problem says its own shapes and scalars.", "Leave out --shape and --scalar.")
        sizes = dims_of(dim or [])
        if named:
            made, notes = import_function(named, folder, example, language, precision, sizes, own)
        else:
            made, notes = import_foreign(kernel, folder, language, precision, sizes, own)
        for note in notes:
            typer.echo(note)
        typer.echo(f"Made {made}. Commit it, and see: kernelteam eval {made}")
        return
    if own:
        raise UserError(f"{kernel} is a kernel itself.", "Leave out --kernel.")
    if kernel.is_file() and (language, precision) != ("triton", "fp32"):
        raise UserError(
            f"{kernel} is a kernel, in its own language and types.", "Leave out --language and --precision."
        )
    from team.tasks.scaffold import scaffold

    made = scaffold(kernel, folder, dims_of(dim or []), shapes_of(shape or []), scalars_of(scalar or []))
    typer.echo(f"Made {made}. Write its reference, commit both, and see: kernelteam eval {made}")


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What this machine has, and each missing thing with its remedy."""
    from team.doctor import diagnose, render

    findings = diagnose()
    if as_json:
        typer.echo(_as_json([finding.__dict__ for finding in findings]))
    else:
        _print(render(findings))


@app.command()
def techniques(
    name: Annotated[str | None, typer.Argument(help="one technique in full", show_default=False)] = None,
    language: Annotated[str | None, typer.Option("--language", help="cpp, cuda or triton; default: all")] = None,
    as_json: AsJson = False,
) -> None:
    """What the team knows how to try: the catalog by tier and category, or one card in full."""
    from team.techniques import listed, one

    shown = one(name, as_json) if name else listed(language or "", as_json)
    typer.echo(shown) if isinstance(shown, str) else _print(shown)


def _as_json(data: object, indent: int | None = 2) -> bytes:
    from pydantic_core import to_json  # a campaign of 1,000 agents takes the standard library a tenth of a second

    return to_json(data, indent=indent)


def _print(renderable: object) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(highlight=False, width=width).print(renderable)


def _leave(status: int) -> NoReturn:
    raise typer.Exit(status)


if __name__ == "__main__":
    main()
