"""Money in flight: what open duties may still cost counts as spent, so that the budget is never passed.

Each duty of a mind has an allowance (``Briefing.dollars`` tells it). An experiment binds two, for its commit may have
to be merged by a mind later; a kept commit on its way to main binds one until it is settled.
"""

from protocol.state import CampaignState

_ROUNDING = 1e-9


def allowance(state: CampaignState) -> float | None:
    """The most that one duty of a mind may cost (US dollars); None while money is not limited."""
    limit = state.policy.max_dollars
    return None if limit is None else limit * state.policy.duty_share


def bound(state: CampaignState) -> float:
    """What everything that is in flight may still cost."""
    open_now = state.index.with_open
    alone = sum(len(open_now(kind)) for kind in ("search", "recheck", "research"))
    claims = 2 * len(open_now("experiment")) + alone + len(state.landings)
    return claims * (allowance(state) or 0.0)


def is_spent(state: CampaignState) -> bool:
    """Whether what was spent leaves no room for another experiment, whatever is in flight."""
    return state.dollars > 0.0 and not _fits(state, state.dollars, 2)


def experiment_is_affordable(state: CampaignState) -> bool:
    """Whether another experiment stays within the budget beside what is in flight."""
    return _fits(state, state.dollars + bound(state), 2)


def search_is_affordable(state: CampaignState) -> bool:
    """Whether another search stays within the budget beside what is in flight."""
    return _fits(state, state.dollars + bound(state), 1)


def _fits(state: CampaignState, claimed: float, duties: int) -> bool:
    limit, each = state.policy.max_dollars, allowance(state)
    return limit is None or each is None or claimed + duties * each <= limit + _ROUNDING
