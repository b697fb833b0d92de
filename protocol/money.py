"""Money in flight: what open duties may still cost counts as spent, so that no budget is ever passed.

Budgets are in dollars, tokens and calls of models, for the campaign and for each agent. Each duty of a mind has an
allowance of each (``Briefing.means`` tells it). An experiment binds two, for its commit may have to be merged by a mind
later; a kept commit on its way to main binds one until it is settled.
"""

from math import ceil
from typing import Literal

from protocol.messages import Means
from protocol.policy import Policy
from protocol.record import Paid
from protocol.state import CampaignState

Unit = Literal["dollars", "tokens", "calls"]
UNITS: tuple[Unit, ...] = ("dollars", "tokens", "calls")
_ROUNDING = 1e-9
_ALONE = ("search", "recheck", "research")
_PAYING = ("experiment", *_ALONE, "resolve")


def allowance(state: CampaignState, unit: Unit = "dollars") -> float | None:
    """The most that one duty of a mind may cost; None while this is not limited."""
    return _share(state.policy, _limit(state.policy, unit), unit)


def means_of(state: CampaignState, agent_name: str) -> Means:
    """What the agent's mind may spend on its open duty, by the campaign's budget and by its own."""
    agent = state.agents[agent_name]
    told = {unit: _least(allowance(state, unit), _own_allowance(state.policy, unit)) for unit in UNITS}
    dollars, tokens, calls = (told[unit] for unit in UNITS)
    duty = agent.open.duty if agent.open else None
    return Means(
        duty=getattr(duty, "id", ""),
        dollars=dollars,
        tokens=None if tokens is None else int(tokens),
        calls=None if calls is None else int(calls),
        lost=agent.lost.get(duty.kind, ()) if duty else (),
    )


def bound(state: CampaignState, unit: Unit = "dollars") -> float:
    """What everything that is in flight may still cost."""
    each, running = allowance(state, unit) or 0.0, (name for kind in _PAYING for name in state.index.with_open(kind))
    paid = [current.paid for name in running if (current := state.agents[name].open)]
    return _claims(state) * each - sum(min(each, _spent(one, unit)) for one in paid)


def spent_up(state: CampaignState) -> str:
    """Which budget has no room for another experiment, whatever is in flight; empty while all have."""
    policy = state.policy
    for unit in UNITS:
        spent, limit = _of_team(state, unit), _limit(policy, unit)
        if limit is not None and spent > 0 and not _fits(state, unit, spent, 2):
            return f"the budget of {in_words(unit, limit)} is spent"
    return ""


def agent_is_spent(state: CampaignState, agent_name: str) -> str:
    """Which budget of its own leaves an agent's mind no room for another duty; empty while all do."""
    paid, policy = state.agents[agent_name].paid, state.policy
    for unit in UNITS:
        limit, each = _own_limit(policy, unit), _own_allowance(policy, unit)
        if limit is not None and each is not None and _spent(paid, unit) + each > limit + _ROUNDING:
            return f"its own budget of {in_words(unit, limit)} is spent"
    return ""


def experiment_is_affordable(state: CampaignState) -> bool:
    """Whether another experiment stays within the budgets beside what is in flight."""
    return all(_fits_beside(state, unit, 2) for unit in UNITS)


def search_is_affordable(state: CampaignState) -> bool:
    """Whether another search stays within the budgets beside what is in flight."""
    return all(_fits_beside(state, unit, 1) for unit in UNITS)


def limits_agents(policy: Policy) -> bool:
    """Whether an agent has any budget of its own."""
    return any(_own_limit(policy, unit) is not None for unit in UNITS)


def in_words(unit: Unit, amount: float) -> str:
    """'$1.50', '2,000,000 tokens'."""
    return f"${amount:.2f}" if unit == "dollars" else f"{amount:,.0f} {unit}"


def _claims(state: CampaignState) -> int:
    """How many allowances are bound by what is in flight, had none of them been used yet."""
    open_now = state.index.with_open
    return 2 * len(open_now("experiment")) + sum(len(open_now(kind)) for kind in _ALONE) + len(state.landings)


def _fits_beside(state: CampaignState, unit: Unit, duties: int) -> bool:
    """Whether so many duties more stay within one budget beside what is in flight.

    What open duties have used of their allowances is added up, agent by agent, only when it matters.
    """
    if _limit(state.policy, unit) is None:
        return True
    spent, each = _of_team(state, unit), allowance(state, unit) or 0.0
    untouched = spent + _claims(state) * each
    return _fits(state, unit, untouched, duties) or _fits(state, unit, spent + bound(state, unit), duties)


def _fits(state: CampaignState, unit: Unit, claimed: float, duties: int) -> bool:
    limit, each = _limit(state.policy, unit), allowance(state, unit)
    return limit is None or each is None or claimed + duties * each <= limit + _ROUNDING


def _limit(policy: Policy, unit: Unit) -> float | None:
    match unit:
        case "dollars":
            return policy.max_dollars
        case "tokens":
            return policy.max_tokens
        case "calls":
            return policy.max_calls


def _own_limit(policy: Policy, unit: Unit) -> float | None:
    match unit:
        case "dollars":
            return policy.max_agent_dollars
        case "tokens":
            return policy.max_agent_tokens
        case "calls":
            return policy.max_agent_calls


def _own_allowance(policy: Policy, unit: Unit) -> float | None:
    return _share(policy, _own_limit(policy, unit), unit)


def _share(policy: Policy, limit: float | None, unit: Unit) -> float | None:
    if limit is None:
        return None
    share = limit * policy.duty_share
    return share if unit == "dollars" else float(ceil(share))


def _least(one: float | None, other: float | None) -> float | None:
    known = [amount for amount in (one, other) if amount is not None]
    return min(known, default=None)


def _of_team(state: CampaignState, unit: Unit) -> float:
    return {"dollars": state.dollars, "tokens": state.tokens, "calls": state.calls}[unit]


def _spent(paid: Paid, unit: Unit) -> float:
    return {"dollars": paid.dollars, "tokens": paid.tokens, "calls": paid.calls}[unit]
