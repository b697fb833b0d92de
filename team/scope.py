"""From what the user typed to the scope of a campaign; whatever can be wrong is found here, before anything runs."""

from pathlib import Path

from team.campaign import members, merged_policy, read_campaign, read_team
from team.devices import discover
from team.errors import UserError
from team.launch import Scope
from team.runs import new_run
from team.tasks.spec import read_spec
from team.tasks.task import validate_task


def scope_of(
    task: Path, agents: str | None, experiments: int | None, minutes: float | None, campaign: Path | None, seed: int
) -> Scope:
    """The scope to confirm. ``UserError`` names the first thing that is wrong and its remedy."""
    spec = read_spec(task)
    validate_task(task)
    file = read_campaign(campaign)
    wanted = read_team(agents, file, 0 if spec.device == "cpu" else len(discover(spec.device, 1)))
    overrides: dict[str, object] = {"max_experiments": experiments, "max_minutes": minutes}
    policy = merged_policy(spec.policy, file, overrides)
    team = members(wanted, discover(spec.device, len(wanted)))
    return Scope(run=new_run(spec.name), task_folder=task, spec=spec, policy=policy, members=team, seed=seed)


def dims_of(texts: list[str]) -> dict[str, int]:
    """'M=256' and its like as a mapping."""
    dims: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier() or not value.isdigit():
            raise UserError(f"'{text}' is not a dimension.", "Write it like --dim M=256")
        dims[name] = int(value)
    return dims
