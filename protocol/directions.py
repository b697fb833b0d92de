"""Directions: who may change what in a round. A direction is a claim on categories, and no two open claims overlap.

The categories of the campaign are dealt over the agents once a round: to those of the category's role first, as evenly
as they go, so that nothing is left unattended by a small team and a large one is cut finer. An agent that finds nothing
more in its direction leaves it and claims what nobody holds. When there is nothing unclaimed for it either, it seconds
another agent's direction: it works in the same categories, but the claim keeps its one owner. Two halves of a category
would not be orthogonal by what a plan says of itself, and an idle device would help nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol import events as ev
from protocol.messages import Direction, Experiment, Role, Standing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from protocol.messages import SearchReport
    from protocol.record import CampaignState, DirectionState

Entries = list[tuple[str, ev.AnyBody]]
_NAMES = {Role.EXPLORER: "structure", Role.EXPLOITER: "tuning"}
_NAMED = 3


def current(state: CampaignState, agent: str) -> DirectionState | None:
    """The open direction that this agent owns or seconds; None when it has none."""
    found = state.directions.get(state.agents[agent].direction)
    return found if found is not None and found.standing is Standing.OPEN else None


def directed(state: CampaignState, agent: str) -> Direction | None:
    """The direction of the agent's experiment in flight, which outlives its round; else its present one."""
    opened = state.agents[agent].open
    if opened is not None and isinstance(opened.duty, Experiment):
        found = state.directions.get(opened.duty.direction)
    else:
        found = current(state, agent)
    return found.claim if found else None


def of_next(state: CampaignState, agent: str) -> str:
    """The direction that the agent's next experiment belongs to, by its id; empty for none.

    Who seconds a direction and found nothing anywhere sweeps what nobody holds, which that direction would forbid.
    """
    mine = current(state, agent)
    if mine is None or (mine.claim.owner != agent and has_nothing_left(state, agent)):
        return ""
    return mine.claim.id


def theme_of(state: CampaignState, ident: str) -> str:
    """What a direction is called over all rounds that go on with it; empty for none.

    Claims are made anew every round, and what the team learned of an approach in a direction outlives the claim.
    """
    while (found := state.directions.get(ident)) is not None and found.claim.follows:
        ident = found.claim.follows
    return found.claim.name if found is not None else ""


def refusal(state: CampaignState, agent: str, category: str) -> str | None:
    """Why the agent's direction does not let it touch this category, in one sentence; None when it does."""
    claim = directed(state, agent)
    if claim is None:
        owner = of_others(state, agent).get(category)
        return owner and f"category '{category}' belongs to {owner} in this round: choose one that nobody holds"
    if category in claim.allowed:
        return None
    return f"category '{category}' is outside direction '{claim.name}': choose one of {', '.join(claim.allowed)}"


def outside(state: CampaignState, agent: str) -> set[str]:
    """Every category of the campaign that the agent's direction does not hold; without one, what others hold."""
    claim = directed(state, agent)
    return set(state.categories).difference(claim.allowed) if claim else set(of_others(state, agent))


def of_others(state: CampaignState, agent: str) -> dict[str, str]:
    """Categories that open directions of other living agents hold, each with the owner."""
    owners = {category: state.directions[ident].claim.owner for category, ident in state.claims.items()}
    return {category: owner for category, owner in owners.items() if owner != agent and state.agents[owner].alive}


def has_nothing_left(state: CampaignState, agent: str) -> bool:
    """True when the agent's mind found nothing in any category on the base that it would start from."""
    return state.agents[agent].exhausted_on == state.head_of(agent) and spent(state, agent).issuperset(state.categories)


def spent(state: CampaignState, agent: str) -> set[str]:
    """Categories in which the agent's mind found nothing on the base that it would start from."""
    known = state.agents[agent]
    return known.spent if known.exhausted_on == state.head_of(agent) else set()


# ---------------------------------------------------------------- who gets what


def due(state: CampaignState, agent: str, now: float) -> Entries:
    """What gives the agent a direction that has something left, before its next experiment; nothing when it has one."""
    if not state.categories or state.team_over:
        return []
    if state.dealt <= state.rounds:
        return due_to_all(state)
    mine, empty = current(state, agent), spent(state, agent)
    if mine is None or empty.issuperset(mine.claim.allowed):
        return _leave(state, agent, mine) + _another(state, agent, empty, now)
    return [] if mine.claim.owner == agent else _rather_its_own(state, agent, empty)


def due_to_all(state: CampaignState) -> Entries:
    """The round's directions for everybody who is there, unless they were dealt already."""
    if not state.categories or state.team_over or state.dealt > state.rounds:
        return []
    return deal(state, [name for name, agent in state.agents.items() if agent.alive])


def deal(state: CampaignState, agents: list[str]) -> Entries:
    """The claims of the round that begins, disjoint, and who seconds whom when there are more agents than categories.

    Who goes on with its direction keeps it. Each other category goes to an agent for which it is fresh, of the
    category's role if possible, with the least so far; then the widest shares are cut for those who have none.
    """
    free = dict.fromkeys(name for name in state.categories if name not in state.claims)
    shares = {agent: _carried(state, agent, free) for agent in agents}
    for name in [name for share in shares.values() for name in share]:
        del free[name]
    takers = [agent for agent in agents if not shares[agent]]
    without = {agent: spent(state, agent) for agent in takers}
    for name in free if takers else ():
        taker = min(takers, key=lambda agent: (*_taste(state, agent, name, without[agent]), len(shares[agent])))
        shares[taker].append(name)
    _cut(shares, takers)
    claims = _claims(state, {agent: share for agent, share in shares.items() if share})
    return [*claims, *_seconds(state, [a for a in agents if not shares[a]], [c.direction for _, c in claims])]


def _carried(state: CampaignState, agent: str, free: Collection[str]) -> list[str]:
    """What an agent that goes on with its direction takes into the new round."""
    last = state.directions.get(state.agents[agent].direction)
    if last is None or not last.goes_on or last.claim.owner != agent:
        return []
    empty = spent(state, agent)
    return [name for name in last.claim.allowed if name in free and name not in empty]


def _taste(state: CampaignState, agent: str, category: str, empty: set[str]) -> tuple[bool, bool, bool]:
    """How little a category suits an agent: nothing left, failed on this very main, another role's."""
    other = state.categories[category].role is not state.agents[agent].member.role
    return category in empty, _failed(state, agent, category), other


def _cut(shares: dict[str, list[str]], takers: list[str]) -> None:
    """Give agents without a share the last category of the widest ones."""
    for agent in takers:
        if shares[agent]:
            continue
        widest = max(takers, key=lambda name: len(shares[name]))
        if len(shares[widest]) < 2:
            return
        shares[agent].append(shares[widest].pop())


def _claims(state: CampaignState, shares: dict[str, list[str]]) -> list[tuple[str, ev.DirectionClaimed]]:
    """One claim for each share; what the others of this deal and the open claims hold is forbidden."""
    held = [*state.claims, *(name for share in shares.values() for name in share)]
    first = len(state.directions) + 1
    return [
        (agent, ev.DirectionClaimed(direction=_direction(state, agent, share, held, first + index)))
        for index, (agent, share) in enumerate(shares.items())
    ]


def _direction(state: CampaignState, agent: str, share: list[str], held: Iterable[str], number: int) -> Direction:
    last = state.directions.get(state.agents[agent].direction)
    follows = last.claim.id if last and last.goes_on and set(share) <= set(last.claim.allowed) else ""
    return Direction(
        id=f"d{number}",
        name=_name(state, share),
        about=_about(state, share),
        allowed=tuple(share),
        forbidden=tuple(name for name in held if name not in share),
        owner=agent,
        round=state.rounds + 1,
        follows=follows,
    )


def _name(state: CampaignState, share: list[str]) -> str:
    if len(share) == len(state.categories) > 1:
        return "everything"
    for role, name in _NAMES.items():
        if len(share) > 1 and set(share) == {c.name for c in state.categories.values() if c.role is role}:
            return name
    more = len(share) - _NAMED
    return "+".join(share[:_NAMED]) + (f"+{more} more" if more > 0 else "")


def _about(state: CampaignState, share: list[str]) -> str:
    told = [state.categories[name] for name in share if name in state.categories]
    return "; ".join(f"{one.name}: {one.about}" if one.about else one.name for one in told)


def _seconds(state: CampaignState, agents: list[str], made: list[Direction]) -> Entries:
    """Agents beyond the last category, spread evenly over the directions of their role, else over all."""
    said: Entries = []
    turns = dict.fromkeys(Role, 0)
    of_role = {role: [d for d in made if state.agents[d.owner].member.role is role] or made for role in Role}
    for agent in agents if made else ():
        role = state.agents[agent].member.role
        chosen = of_role[role][turns[role] % len(of_role[role])]
        turns[role] += 1
        why = f"{len(made)} directions hold all categories of this round"
        said.append((agent, ev.DirectionSeconded(direction=chosen.id, why=why)))
    return said


# ---------------------------------------------------------------- one agent within a round


def _leave(state: CampaignState, agent: str, mine: DirectionState | None) -> Entries:
    if mine is None or mine.claim.owner != agent:
        return []
    standing = Standing.WON if mine.keeps else Standing.CLOSED
    why = f"nothing admissible is left in it on {state.head_of(agent)[:10]}"
    return [(agent, ev.DirectionClosed(direction=mine.claim.id, standing=standing, why=why))]


def _another(state: CampaignState, agent: str, empty: set[str], now: float) -> Entries:
    """What nobody holds and is fresh; what an agent that is gone holds; another's direction; what failed before."""
    if fresh := _rather_its_own(state, agent, empty):
        return fresh
    unclaimed = [name for name in state.categories if name not in state.claims and name not in empty]
    gone, freed = _given_up(state, now)
    if freed := [name for name in freed if name not in empty]:
        return [*gone, *_claim(state, agent, freed)]
    return _second(state, agent, empty) or (_claim(state, agent, unclaimed) if unclaimed else [])


def _rather_its_own(state: CampaignState, agent: str, empty: set[str]) -> Entries:
    """For an agent that seconds: what nobody holds and is fresh for it, so that it owns a direction again."""
    free = [name for name in state.categories if name not in state.claims and name not in empty]
    fresh = [name for name in free if not _failed(state, agent, name)]
    return _claim(state, agent, fresh) if fresh else []


def _failed(state: CampaignState, agent: str, category: str) -> bool:
    """Whether the agent's direction failed with this category on the very main that stands now."""
    return state.agents[agent].failed.get(category) == state.main


def _claim(state: CampaignState, agent: str, names: list[str]) -> Entries:
    """Claim what is of the agent's role; all of it when nothing is."""
    role = state.agents[agent].member.role
    own = [name for name in names if state.categories[name].role is role]
    return list(_claims(state, {agent: own or names}))


def _given_up(state: CampaignState, now: float) -> tuple[Entries, list[str]]:
    """Directions whose owner has been away for longer than a restart takes, closed, and their categories."""
    closed: Entries = []
    freed: list[str] = []
    for ident in dict.fromkeys(state.claims.values()):
        claim = state.directions[ident].claim
        owner = state.agents[claim.owner]
        if not owner.alive and now - owner.absent_since > state.policy.absent_after:
            why = f"its owner {claim.owner} is gone"
            closed.append((claim.owner, ev.DirectionClosed(direction=ident, standing=Standing.CLOSED, why=why)))
            freed += claim.allowed
    return closed, freed


def _second(state: CampaignState, agent: str, empty: set[str]) -> Entries:
    """Work in the direction that has the fewest seconds, of those that have something left for this agent."""
    theirs = [state.directions[ident] for ident in dict.fromkeys(state.claims.values())]
    open_to = [d for d in theirs if d.claim.owner != agent and not empty.issuperset(d.claim.allowed)]
    if not open_to:
        return []
    chosen = min(open_to, key=lambda direction: len(direction.seconds))
    why = "nothing unclaimed is left for it"
    return [(agent, ev.DirectionSeconded(direction=chosen.claim.id, why=why))]


# ---------------------------------------------------------------- proposals


def propose(state: CampaignState, agent: str, name: str, about: str, allowed: tuple[str, ...], source: str) -> Entries:
    """A mind's or a person's direction for one agent, and the claim that follows unless it is refused.

    Without categories it gives the agent's own direction another purpose.
    """
    mine = current(state, agent)
    own = mine if mine and mine.claim.owner == agent else None
    wanted = allowed or (own.claim.allowed if own else ())
    why = _objection(state, agent, own, name, wanted)
    said = ev.DirectionProposed(name=name, about=about, allowed=allowed, source=source, refused=why)
    if why:
        return [(agent, said)]
    left = [(agent, _left_for(own, name))] if own else []
    (claim,) = _claims(state, {agent: list(wanted)})
    held = own.claim.allowed if own else ()
    forbidden = tuple(dict.fromkeys((*claim[1].direction.forbidden, *held)))
    direction = claim[1].direction.model_copy(
        update={"name": name, "about": about, "forbidden": tuple(c for c in forbidden if c not in wanted)}
    )
    return [(agent, said), *left, (agent, ev.DirectionClaimed(direction=direction))]


def from_search(state: CampaignState, agent: str, report: SearchReport) -> tuple[ev.AnyBody, ...]:
    """A search that found a kind of change which the campaign does not know yet proposes it as a direction."""
    if not state.categories or state.team_over or report.category in state.categories:
        return ()
    entries = propose(state, agent, report.technique, report.why, (report.category,), f"search {report.id}")
    return tuple(body for _, body in entries)


def _left_for(own: DirectionState, name: str) -> ev.DirectionClosed:
    standing = Standing.WON if own.keeps else Standing.CLOSED
    return ev.DirectionClosed(direction=own.claim.id, standing=standing, why=f"left for '{name}'")


def _objection(state: CampaignState, agent: str, own: DirectionState | None, name: str, wanted: tuple[str, ...]) -> str:
    """Why a proposed direction is refused, in one sentence; empty when it is not."""
    if not state.categories or state.team_over:
        return "no directions are claimed now: every category is open to every agent"
    if not wanted:
        return f"{agent} owns no direction to give another purpose: name the categories of the new one"
    for category in wanted:
        holder = state.directions[state.claims[category]].claim if category in state.claims else None
        if holder is not None and holder.owner != agent:
            return f"category '{category}' belongs to {holder.owner}'s direction '{holder.name}' in this round"
    if own is not None and (own.claim.name, set(own.claim.allowed)) == (name, set(wanted)):
        return f"this is {agent}'s direction already"
    return ""
