"""From what the user typed to the scope of a campaign; whatever can be wrong is found here, before anything runs."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from protocol.events import Member
from protocol.hardware import Hardware
from protocol.memory import place_of
from protocol.messages import Outcome
from protocol.problem import Problem
from roles.minds.registry import UnknownMind, check_mind
from team.campaign import members, merged_policy, read_campaign, read_team
from team.devices import discover, has_gpu, how_many
from team.devices.device import Device
from team.devices.hardware import hardware_of
from team.errors import UserError
from team.judge.client import Judge
from team.judge.request import Check, Describe
from team.launch import Scope, language_of
from team.memory import advice_for
from team.runs import new_run
from team.tasks.spec import TaskSpec, read_spec
from team.workspace.origin import inspect

Number = TypeVar("Number", int, float)


def scope_of(
    task: Path,
    agents: str | None,
    experiments: int | None,
    minutes: float | None,
    campaign: Path | None,
    seed: int,
    hardware: Path | None = None,
    compile_jobs: str = "auto",
) -> Scope:
    """The scope to confirm. ``UserError`` names the first thing that is wrong and its remedy."""
    spec = read_spec(task)
    refuse_without_gpu(spec)
    file = read_campaign(campaign)
    there = how_many(spec.device)
    wanted = read_team(agents, file, min(2, there) if spec.device == "cpu" else there)
    overrides: dict[str, object] = {"max_experiments": experiments, "max_minutes": minutes}
    overrides["compile_jobs"] = _jobs(compile_jobs)
    policy = merged_policy(spec.policy, file, overrides)
    devices = discover(spec.device, len(wanted), policy.allow_mixed)
    for member in wanted:
        refuse_unknown_mind(member.mind, member.options)
    inspect(task, ("task.toml", spec.source, spec.reference, *spec.editable_files))
    problem = _fit(task, devices[0])
    team = members(wanted, list(devices))
    block = hardware_of(devices[0].info(), hardware)
    workloads = {w.name: w.dims for w in spec.must_pass}
    place = place_of(spec.operator or spec.name, language_of(spec), block.arch, workloads)
    advice, note = advice_for(place, policy)
    return Scope(
        run=new_run(spec.name),
        task_folder=task,
        spec=spec,
        policy=policy,
        members=team,
        seed=seed,
        hardware=block,
        problem=problem,
        advice=advice,
        advice_note=note,
        tooling=_tooling(spec, block, team),
    )


def _tooling(spec: TaskSpec, hardware: Hardware, team: tuple[Member, ...]) -> tuple[str, ...]:
    """What the campaign may use: the judge's compiler with its flags, libraries, profiles, and the minds."""
    flags = spec.build.flags
    compiler = hardware.toolkit if spec.device == "cuda" else hardware.compiler
    libraries = "vendors' libraries" if spec.screen.libraries else "no vendors' libraries"
    minds = sorted({member.mind for member in team})
    told = (compiler or "the compiler", " ".join(flags) if flags else "the judge's flags", libraries)
    return (*told, f"profiles, minds: {' '.join(minds)}")


def refuse_without_gpu(spec: TaskSpec) -> None:
    """Raise the user's sentence when a Triton kernel is to be measured on a machine without a GPU."""
    if spec.contract == "triton" and not has_gpu():
        raise UserError(
            f"Speed of Triton kernels needs a GPU, and there is none here for task {spec.name}.",
            "Measure it where there is one; whether the kernel is right can be seen here: kernelteam eval TASK",
        )


def _jobs(text: str) -> int | None:
    """How many compilations the user wants side by side; None leaves it to the machine."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"--compile-jobs is '{text}'.", "Give 'auto' or a number from 1 on.")
    return int(text)


def refuse_unknown_mind(name: str, options: Mapping[str, Any]) -> None:
    """Raise the user's sentence when this mind cannot think on this machine."""
    try:
        check_mind(name, options)
    except UnknownMind as unknown:
        raise UserError(str(unknown), unknown.remedy) from None


def _fit(task: Path, device: Device) -> Problem:
    """Build and check the kernel once, before anything is made or started; what it computes, as the judge sees it."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-check-") as scratch, Judge(device, Path(scratch)) as judge:
        found = judge.check(Check(task=str(task.resolve()), tree=str(task.resolve())))
        problem = judge.describe(Describe(task=str(task.resolve())))
    if found.outcome is not Outcome.MEASURED:
        where = f" on workload '{found.workload}'" if found.workload else ""
        raise UserError(
            f"The kernel as it stands does not pass ({found.outcome.value}){where}: {found.detail}",
            "Mend it, or list the workload as known_broken in task.toml with the reason.",
        )
    return problem


def dims_of(texts: list[str]) -> dict[str, int]:
    """'M=256' and its like as a mapping."""
    named = (_named(text, "a dimension", "--dim M=256") for text in texts)
    return {name: _number(int, value, "--dim M=256") for name, value in named}


def shapes_of(texts: list[str]) -> dict[str, list[str]]:
    """'A=M,K' and its like as a mapping."""
    named = (_named(text, "a shape", "--shape A=M,K") for text in texts)
    return {name: [extent.strip() for extent in value.split(",")] for name, value in named}


def scalars_of(texts: list[str]) -> dict[str, float]:
    """'eps=1e-5' and its like as a mapping."""
    named = (_named(text, "a scalar", "--scalar eps=1e-5") for text in texts)
    return {name: _number(float, value, "--scalar eps=1e-5") for name, value in named}


def _named(text: str, what: str, example: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier() or not value:
        raise UserError(f"'{text}' is not {what}.", f"Write it like {example}")
    return name, value


def _number(kind: type[Number], text: str, example: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise UserError(f"'{text}' is not a number of the right kind.", f"Write it like {example}") from None
