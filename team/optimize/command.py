"""``kernelteam optimize`` as typed: flags into ``Options``, dims from whatever other ``--NAME=VALUE`` there is."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from team.errors import UserError

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def optimize(
    context: typer.Context,
    baseline: Annotated[Path | None, typer.Argument(help="a .cu or .cpp with solve, or a Triton .py")] = None,
    baseline_: Annotated[Path | None, typer.Option("--baseline", help="the same as an option")] = None,
    ref: Annotated[Path | None, typer.Option("--ref", help="module with reference(**kwargs)")] = None,
    dims: Annotated[str, typer.Option("--dims", help='JSON, e.g. {"M": 4096}; or --M=4096')] = "",
    shape: Annotated[list[str] | None, typer.Option("--shape", help="extents of a pointer: --shape A=M,K")] = None,
    iterations: Annotated[int, typer.Option("--iterations", help="the most iterations")] = 3,
    ncu_num: Annotated[int, typer.Option("--ncu-num", help="metrics per axis")] = 5,
    branches: Annotated[
        int, typer.Option("--branches", help="kernels of an iteration, 1 to 8; the last ones may hold several methods")
    ] = 4,
    noise_threshold_pct: Annotated[float, typer.Option("--noise-threshold-pct", help="smallest gain kept (%)")] = 2.0,
    ptr_size: Annotated[int, typer.Option("--ptr-size", help="elements of every pointer; 0: found out")] = 0,
    compile_jobs: Annotated[str, typer.Option("--compile-jobs", help="compilations side by side, or auto")] = "auto",
    numerics_mode: Annotated[str, typer.Option("--numerics-mode", help="reference, strict, approximate")] = "reference",
    archetype: Annotated[str, typer.Option("--archetype", help="which dims the smaller scales scale")] = "generic",
    validation_seeds: Annotated[
        str, typer.Option("--validation-seeds", help="numbers, with commas")
    ] = "7,19,41,73,101",
    workload_matrix: Annotated[Path | None, typer.Option("--workload-matrix", help="JSON with scales")] = None,
    max_working_set_mb: Annotated[float, typer.Option("--max-working-set-mb")] = 384.0,
    hard_working_set_mb: Annotated[float, typer.Option("--hard-working-set-mb")] = 512.0,
    adaptive_downscale: Annotated[bool, typer.Option("--adaptive-downscale/--no-adaptive-downscale")] = True,
    oom_retries: Annotated[int, typer.Option("--oom-retries")] = 3,
    timing_batches: Annotated[int, typer.Option("--timing-batches")] = 5,
    timing_repeats: Annotated[int, typer.Option("--timing-repeats")] = 30,
    env_out: Annotated[Path | None, typer.Option("--env-out", help="where env.json is written as well")] = None,
    warmup: Annotated[int, typer.Option("--warmup")] = 10,
    repeat: Annotated[int, typer.Option("--repeat")] = 20,
    gpu: Annotated[int, typer.Option("--gpu", help="which visible GPU")] = 0,
    atol: Annotated[float, typer.Option("--atol", help="the reference's own atol comes first")] = 1e-4,
    rtol: Annotated[float, typer.Option("--rtol", help="the reference's own rtol comes first")] = 1e-3,
    seed: Annotated[int, typer.Option("--seed", help="of the mind")] = 42,
    nvcc_bin: Annotated[Path | None, typer.Option("--nvcc-bin", help="which nvcc")] = None,
    benchmark: Annotated[str, typer.Option("--benchmark", help="not run: the judge times")] = "",
    arch: Annotated[str, typer.Option("--arch")] = "",
    backend: Annotated[str, typer.Option("--backend", help="auto, cuda, cutlass, triton, cpp")] = "auto",
    mind: Annotated[str, typer.Option("--mind", help="catalog, anthropic, command, scripted:PATH")] = "catalog",
    ncu_policy: Annotated[str, typer.Option("--ncu-policy", help="required or optional")] = "optional",
    law: Annotated[
        Path | None, typer.Option("--campaign", help="campaign.toml with the law and the mind's options")
    ] = None,
    dollars: Annotated[float | None, typer.Option("--dollars", help="the most that the mind may spend")] = None,
    diagnostic: Annotated[
        bool, typer.Option("--diagnostic", help="say what the hardware gate sees, run nothing")
    ] = False,
    resume: Annotated[Path | None, typer.Option("--resume", help="go on with this run folder")] = None,
) -> None:
    """Make one kernel faster: the optimizer skills' inputs, flags, gates, artifacts and exit codes, our judge.

    Dims are given as --M=4096 or --dims JSON. Exit codes: 0 verified, 2 kernel, 3 hardware or tools, 4 baseline inputs.
    """
    from team.optimize import run

    given = dict(context.params)
    if resume is not None:
        raise typer.Exit(int(_guarded(lambda: run.resume(resume, typer.echo), resume)))
    for name in ("resume", "diagnostic", "baseline_", "dims", "shape"):
        del given[name]
    options = _options(given, baseline or baseline_, dims, shape or [], context.args)
    start = run.diagnose if diagnostic else run.begin
    raise typer.Exit(int(_guarded(lambda: start(options, typer.echo), None)))


def _guarded(act: Any, folder: Path | None) -> int:
    """Run to the end; broken off by hand, say how to go on."""
    try:
        return act()
    except KeyboardInterrupt:
        where = folder or "RUN_DIR"
        typer.echo(f"broken off; go on with: kernelteam optimize --resume {where}", err=True)
        return 130


def _options(given: dict[str, Any], baseline: Path | None, dims: str, shapes: list[str], extra: Sequence[str]) -> Any:
    from pydantic import ValidationError

    from team.optimize.options import Options
    from team.scope import shapes_of

    if baseline is None or given["ref"] is None:
        what = "No baseline is given." if baseline is None else "No reference is given."
        raise UserError(what, "Type: kernelteam optimize KERNEL --ref ref.py --M=4096 --N=4096 --K=4096")
    sizes, scalars = _numbers(dims, extra)
    jobs = given["compile_jobs"]
    try:
        options = Options.model_validate({
            **given,
            "baseline": baseline,
            "dims": sizes,
            "scalars": scalars,
            "shapes": shapes_of(shapes),
            "compile_jobs": None if jobs == "auto" else jobs,
            "validation_seeds": [part.strip() for part in given["validation_seeds"].split(",") if part.strip()],
        })  # fmt: skip
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-") if first["loc"] else "options"
        raise UserError(f"--{name}: {first['msg']}.", "See: kernelteam optimize --help") from None
    for file in (options.baseline, options.ref):  # what another typer leaves in the context may be text
        if not file.is_file():
            raise UserError(f"There is no file {file}.", "Name the kernel's file and, with --ref, the reference's.")
    return options


def _numbers(dims: str, extra: Sequence[str]) -> tuple[dict[str, int], dict[str, float]]:
    """Dims and scalars from ``--dims`` and from every ``--NAME=VALUE`` (or ``--NAME VALUE``) that is no flag."""
    found: dict[str, Any] = _json(dims) if dims else {}
    words = iter(extra)
    for word in words:
        name, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name.replace("-", "_").isidentifier():
            raise UserError(f"'{word}' is neither a flag nor a dim.", "Write dims as --M=4096.")
        found[name] = value if sign else next(words, "")
    sizes: dict[str, int] = {}
    scalars: dict[str, float] = {}
    for name, value in found.items():
        number = _number(name, str(value))
        if isinstance(number, int):
            sizes[name] = number
        else:
            scalars[name] = number
    return sizes, scalars


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"--dims is not JSON: {error}.", """Write it like --dims '{"M": 4096}'""") from None
    if not isinstance(found, dict):
        raise UserError("--dims is no JSON object.", """Write it like --dims '{"M": 4096}'""")
    return found


def _number(name: str, value: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise UserError(f"--{name} is '{value}', which is no number and no flag of optimize.", "See: optimize --help")
