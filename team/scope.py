"""From what the user typed to the scope of a campaign; whatever can be wrong is found here, before anything runs."""

import tempfile
from pathlib import Path

from protocol.messages import Outcome
from roles.minds.registry import UnknownMind, make_mind
from team.campaign import members, merged_policy, read_campaign, read_team
from team.devices import discover, how_many
from team.devices.device import Device
from team.errors import UserError
from team.judge.client import Judge
from team.judge.request import Check
from team.launch import Scope
from team.runs import new_run
from team.tasks.spec import read_spec
from team.workspace.origin import inspect


def scope_of(
    task: Path, agents: str | None, experiments: int | None, minutes: float | None, campaign: Path | None, seed: int
) -> Scope:
    """The scope to confirm. ``UserError`` names the first thing that is wrong and its remedy."""
    spec = read_spec(task)
    file = read_campaign(campaign)
    wanted = read_team(agents, file, 2 if spec.device == "cpu" else how_many(spec.device))
    overrides: dict[str, object] = {"max_experiments": experiments, "max_minutes": minutes}
    policy = merged_policy(spec.policy, file, overrides)
    devices = discover(spec.device, len(wanted))
    for mind in {member.mind for member in wanted}:
        _refuse_unknown_mind(mind)
    inspect(task, ("task.toml", spec.source, spec.reference, *spec.editable_files))
    _refuse_unfit(task, devices[0])
    team = members(wanted, list(devices))
    return Scope(run=new_run(spec.name), task_folder=task, spec=spec, policy=policy, members=team, seed=seed)


def _refuse_unknown_mind(name: str) -> None:
    try:
        make_mind(name)
    except UnknownMind as unknown:
        raise UserError(str(unknown), "Name one of them after the role, e.g. --agents explorer:catalog") from None


def _refuse_unfit(task: Path, device: Device) -> None:
    """Build and check the kernel once, before anything is made or started."""
    with tempfile.TemporaryDirectory(prefix="kernelteam-check-") as scratch, Judge(device, Path(scratch)) as judge:
        found = judge.check(Check(task=str(task.resolve()), tree=str(task.resolve())))
    if found.outcome is not Outcome.MEASURED:
        where = f" on workload '{found.workload}'" if found.workload else ""
        raise UserError(
            f"The kernel as it stands does not pass ({found.outcome.value}){where}: {found.detail}",
            "Mend it, or list the workload as known_broken in task.toml.",
        )


def dims_of(texts: list[str]) -> dict[str, int]:
    """'M=256' and its like as a mapping."""
    dims: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value.isdigit():
            raise UserError(f"'{text}' is not a dimension.", "Write it like --dim M=256")
        dims[name] = int(value)
    return dims
