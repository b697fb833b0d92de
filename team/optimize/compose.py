"""Branches that hold several methods: further ones on top of an idea's first variant, within the axis budget.

The other branches hold the idea's own change alone, in its variants, so that the race compares method sets. What a
composed branch owes to each of its methods is measured afterwards, by taking each out (``team.optimize.ablation``).
"""

from collections.abc import Iterator, Mapping

from protocol.messages import TEXT, Parameter, Plan, ProfileReport, Proposal, Role, Variant
from roles.minds.mind import NothingToPropose
from roles.techniques.catalog import all_cards, card_named
from team.optimize.branches import Idea, Method
from team.optimize.briefing import briefing_on_top
from team.optimize.records import axis_of
from team.optimize.session import Session
from team.optimize.strict import refuse_reordering
from team.workspace.objects import Refused


def with_composed_branches(
    session: Session, number: int, idea: Idea, profile: ProfileReport, budget: Mapping[str, int]
) -> Idea:
    """The idea with its last branches composed; as it was where one branch, the evidence or the mind allow no more.

    At most half of the branches are: with four, the first two methods, and all three.
    """
    if session.options.branches < 2 or sum(budget.values()) < 2:
        return idea
    methods = [*idea.methods(0, session.best)]
    dollars = idea.proposal.dollars
    while open_axes := _open_axes(budget, methods):
        try:
            further, cost = _further(session, number, idea.role, methods, profile, open_axes)
        except NothingToPropose as nothing:
            dollars += nothing.dollars
            break
        dollars += cost
        methods.append(further)
    if len(methods) < 2:
        idea.proposal = idea.proposal.model_copy(update={"dollars": dollars})
        return idea
    stacked = min(len(methods) - 1, session.options.branches // 2)
    whole = [
        Variant(parameters=dict(one.parameters), files=_changed(session, one.commit)) for one in methods[-stacked:]
    ]
    plain = idea.proposal.variants[: session.options.branches - stacked]
    proposal = idea.proposal.model_copy(update={"variants": (*plain, *whole), "dollars": dollars})
    commits = [*idea.commits[: len(plain)], *(one.commit for one in methods[-stacked:])]
    return Idea(idea.role, proposal, commits, tuple(methods), stacked)


def _open_axes(budget: Mapping[str, int], methods: list[Method]) -> dict[str, int]:
    """Axis -> methods that it may still take; empty when the whole budget is used up."""
    used = [_axis(one.plan) for one in methods]
    if len(used) >= sum(budget.values()):
        return {}
    return {axis: most - used.count(axis) for axis, most in budget.items() if most > used.count(axis)}


def _axis(plan: Plan) -> str:
    return axis_of(card_named(plan.technique))


def _further(
    session: Session,
    number: int,
    role: Role,
    methods: list[Method],
    profile: ProfileReport,
    open_axes: Mapping[str, int],
) -> tuple[Method, float]:
    """One method more, asked for on top of those that are there; ``NothingToPropose`` when there is none."""
    last = methods[-1]
    taken = [one.plan.technique for one in methods]
    barred = {*taken, *(card.name for card in all_cards() if axis_of(card) not in open_axes)}
    briefing = briefing_on_top(session, number, role, profile, last.commit, len(methods), tuple(sorted(barred)))
    proposal = session.mind.propose(briefing)
    try:
        _refuse_outside(proposal.plan, taken, open_axes)
        refuse_reordering(session.options, proposal.plan)
        parameters = dict(_merged(last, proposal))
        variant = Variant(parameters=parameters, files=proposal.variants[0].files)
        commit = session.commit(last.commit, variant, f"iterv{number}", proposal.plan.technique, proposal.plan.change)
    except Refused as no:
        session.say(f"iteration {number}: a further method was refused: {no}")
        raise NothingToPropose(str(no), proposal.dollars) from None
    return Method(plan=proposal.plan, parameters=parameters, base=last.commit, commit=commit), proposal.dollars


def _refuse_outside(plan: Plan, taken: list[str], open_axes: Mapping[str, int]) -> None:
    if plan.technique in taken:
        raise Refused(f"{plan.technique} is in this branch already.")
    axis = _axis(plan)
    if axis != "unknown" and axis not in open_axes:
        raise Refused(f"{plan.technique} works on the axis {axis}, which has no budget left.")


def _merged(last: Method, proposal: Proposal) -> Iterator[tuple[str, Parameter]]:
    """Settings of all methods so far; a name that two of them use is told apart by the technique."""
    known = {name: value for name, value in last.parameters.items() if name != TEXT}
    yield from known.items()
    for name, value in proposal.variants[0].parameters.items():
        yield (f"{proposal.plan.technique}.{name}" if name in known else name), value


def _changed(session: Session, commit: str) -> dict[str, str]:
    """The editable files that differ between a commit and the best."""
    files = session.spec.editable_files
    now, then = session.hub.read(files, commit), session.hub.read(files, session.best)
    return {path: text for path, text in now.items() if text != then.get(path)}
