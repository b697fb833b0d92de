"""What a campaign is asked to be: the team, the law's overrides, the budget. From flags or a ``campaign.toml``."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.events import Member
from protocol.messages import Role
from protocol.policy import Policy
from team.devices.device import Device
from team.errors import UserError


class MemberSpec(BaseModel):
    """One agent as a user writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    role: Role = Field(description="explorer or exploiter")
    mind: str = Field(default="catalog", description="which mind thinks for it")
    options: dict[str, Any] = Field(default_factory=dict, description="what that mind wants to know: see its docs")


class CampaignFile(BaseModel):
    """``campaign.toml``: an optional file that says more than the flags do."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    agents: tuple[MemberSpec, ...] = Field(default=(), description="default: one explorer and one exploiter")
    policy: dict[str, object] = Field(default_factory=dict, description="overrides of the law's numbers, by name")


_PAIR = (MemberSpec(role=Role.EXPLORER), MemberSpec(role=Role.EXPLOITER))


def read_campaign(path: Path | None) -> CampaignFile:
    """The file's content, or the defaults when none is given."""
    if path is None:
        return CampaignFile()
    try:
        return CampaignFile.model_validate(tomllib.loads(path.read_text()))
    except FileNotFoundError:
        raise UserError(f"There is no campaign file {path}.", "Give the path of an existing one.") from None
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise UserError(f"{path} does not describe a campaign: {error}.", "Correct that entry.") from None


def read_team(text: str | None, file: CampaignFile, devices: int) -> tuple[MemberSpec, ...]:
    """The team: from ``--agents`` ('4' or 'explorer:catalog,exploiter:noop'), the file, or one agent per device.

    A bare number alternates explorer and exploiter.
    """
    if text is None:
        return file.agents or _default_team(devices)
    if text.isdigit() and int(text) > 0:
        return tuple(_PAIR[index % 2] for index in range(int(text)))
    return tuple(_member(part.strip()) for part in text.split(","))


def _default_team(devices: int) -> tuple[MemberSpec, ...]:
    return tuple(_PAIR[index % 2] for index in range(max(1, devices)))


def _member(text: str) -> MemberSpec:
    role, _, mind = text.partition(":")
    if role not in [known.value for known in Role]:
        raise UserError(f"'{role}' is no role.", "Use explorer or exploiter, e.g. --agents explorer:catalog,exploiter")
    return MemberSpec(role=Role(role), mind=mind or "catalog")


def members(team: tuple[MemberSpec, ...], devices: list[Device]) -> tuple[Member, ...]:
    """Name the agents and give each a device; with fewer devices than agents, a sentence says what to do."""
    if len(devices) < len(team):
        raise UserError(
            f"{len(team)} agents need {len(team)} devices and there are {len(devices)}.",
            f"Ask for fewer: --agents {len(devices)}",
        )
    counts: dict[Role, int] = {}
    named: list[Member] = []
    for spec, device in zip(team, devices, strict=False):
        counts[spec.role] = counts.get(spec.role, 0) + 1
        name = f"{spec.role.value}-{counts[spec.role]}"
        named.append(Member(name=name, role=spec.role, mind=spec.mind, device=device.id, options=spec.options))
    return tuple(named)


def merged_policy(task: Policy, file: CampaignFile, overrides: dict[str, object]) -> Policy:
    """The task's law, then the file's overrides, then the flags'. An unknown name is an error."""
    values = (
        task.model_dump() | dict(file.policy) | {name: value for name, value in overrides.items() if value is not None}
    )
    try:
        return Policy.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UserError(f"The law has no such setting or value: {name}: {first['msg']}.", "Correct it.") from None
