"""What a mind is told for one experiment, built from the state of the ledger and from nothing else."""

from protocol.counters import closed_categories, phase_of
from protocol.directions import directed
from protocol.events import InteractsBadly
from protocol.findings import ranked
from protocol.messages import BadPair, Briefing, PastExperiment, Position, Verdict
from protocol.money import allowance
from protocol.state import CampaignState, ExperimentState


def briefing_of(state: CampaignState, agent_name: str, base: str) -> Briefing:
    """The briefing of one agent on one base. ``editable`` is left empty: its agent reads the files from git."""
    agent, started, claim = state.agents[agent_name], state.started, directed(state, agent_name)
    return Briefing(
        agent=agent_name,
        role=agent.member.role,
        number=agent.streaks.experiments,
        task=started.task,
        language=started.language,
        numerics=started.numerics,
        editable={},
        base=base,
        workloads=started.workloads,
        phase=phase_of(state.policy, agent.streaks),
        position=agent.profile.position if agent.profile else Position.UNKNOWN,
        direction=(f"{claim.name}: {claim.about}" if claim.about else claim.name) if claim else "",
        round=state.rounds + 1,
        allowed_categories=claim.allowed if claim else (),
        forbidden_categories=claim.forbidden if claim else (),
        findings=ranked(state, agent_name),
        closed_categories=closed_categories(state.policy, agent.streaks),
        abandoned=tuple(state.abandoned),
        search=agent.search,
        advice=started.advice,
        history=tuple(_past(state, e) for e in state.judged if e.verdict is not Verdict.LOST),
        profile=agent.profile,
        refused=_refused(state, agent_name),
        bad_pairs=tuple(_bad_pair(state, pair) for pair in state.bad_pairs),
        law=state.policy,
        max_variants=state.policy.variants,
        team=tuple(state.agents),
        dollars=allowance(state),
        seed=started.seed + agent.tries + 1000 * agent.place,
    )


def _refused(state: CampaignState, agent_name: str) -> tuple[str, ...]:
    current = state.agents[agent_name].open
    experiment = state.experiments.get(getattr(current.duty, "id", "")) if current else None
    return tuple(experiment.refused) if experiment else ()


def _bad_pair(state: CampaignState, pair: InteractsBadly) -> BadPair:
    def technique(name: str) -> str:
        plan = state.experiments[name].plan
        return plan.technique if plan else ""

    others = {name: technique(name) for name in pair.others}
    return BadPair(experiment=pair.experiment, technique=technique(pair.experiment), others=others, why=pair.why)


def _past(state: CampaignState, experiment: ExperimentState) -> PastExperiment:
    assert experiment.plan is not None
    assert experiment.verdict is not None
    overall = experiment.overall
    return PastExperiment(
        id=experiment.id,
        agent=experiment.agent,
        role=state.agents[experiment.agent].member.role,
        plan=experiment.plan,
        parameters=experiment.parameters,
        verdict=experiment.verdict,
        reason=experiment.reason,
        gain=overall.gain if overall else None,
        low=overall.low if overall else None,
        high=overall.high if overall else None,
        base=experiment.base,
        commit=experiment.commit,
        screened=experiment.screened,
    )
