"""What the mind is told for one iteration: the best kernel, everything tried, the frontier, where the kernel stands."""

from protocol.messages import Briefing, Means, Phase, Position, ProfileReport, Role
from protocol.race import frontier
from team.optimize.session import AGENT, Session
from team.race import with_texts


def briefing_for(
    session: Session, number: int, role: Role, profile: ProfileReport | None, refused: tuple[str, ...]
) -> Briefing:
    """The briefing of one iteration. An exploiter is offered the variants that ran and lost their race."""
    state, spec = session.state, session.spec
    past = tuple(state.experiments)
    runners_up = frontier(past, session.policy) if role is Role.EXPLOITER else ()
    return Briefing(
        agent=AGENT,
        role=role,
        number=len(past),
        task=spec.name,
        language=session.options.language,
        numerics=spec.numerics,
        editable=session.hub.read(spec.editable_files, session.best),
        base=session.best,
        workloads={one.name: one.dims for one in spec.workloads},
        phase=_phase(session, len(past)),
        position=profile.position if profile else Position.UNKNOWN,
        history=past,
        profile=profile,
        refused=refused,
        law=session.policy,
        max_variants=session.options.branches,
        frontier=with_texts(session.hub, spec.editable_files, runners_up),
        dollars=_left(session),
        means=Means(duty=f"iterv{number}", dollars=_left(session)),
        cores=len(session.device.kernel_cores),
        seed=session.options.seed + number,
    )


def briefing_on_top(
    session: Session,
    number: int,
    role: Role,
    profile: ProfileReport | None,
    base: str,
    methods: int,
    barred: tuple[str, ...],
) -> Briefing:
    """The briefing for one method more on ``base``, which holds ``methods`` that were not measured yet."""
    briefing = briefing_for(session, number, role, profile, ())
    place = len(session.state.experiments) + methods
    return briefing.model_copy(
        update={
            "number": place,
            "base": base,
            "editable": session.hub.read(session.spec.editable_files, base),
            "abandoned": barred,
            "frontier": (),
            "max_variants": 1,
            "means": briefing.means.model_copy(update={"duty": f"iterv{number}-{methods + 1}"}),
            "seed": session.options.seed + number + methods,
        }
    )


def roles_of(number: int) -> tuple[Role, Role]:
    """Who thinks in an iteration, and who does when the first has no idea: new structure and polish in turn."""
    pair = (Role.EXPLORER, Role.EXPLOITER)
    return pair if number % 2 else (pair[1], pair[0])


def _phase(session: Session, experiments: int) -> Phase:
    policy = session.policy
    if experiments < policy.mid_from:
        return Phase.EARLY
    return Phase.MID if experiments < policy.late_from else Phase.LATE


def _left(session: Session) -> float | None:
    """What the mind may still spend; None when nobody limited it."""
    limit = session.options.dollars
    return None if limit is None else max(0.0, limit - session.state.dollars)
