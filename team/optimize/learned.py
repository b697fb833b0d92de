"""What an iteration teaches: a line of history for each method of its champion, and what that champion owes to it.

A branch that holds one change says what that change is worth. Of one that holds several only the whole was measured;
each of its methods waits for its ablation (``team.optimize.ablation``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protocol.messages import Decision, Measurement, PastExperiment, Verdict
from team.optimize import records
from team.optimize.artifacts import write_json, write_text
from team.optimize.branches import Idea, Method, Trial
from team.optimize.session import AGENT, Session

_ALONE = "the kernel without this change is the best before it; both were timed in pairs at the same shapes"
_TOGETHER = "only the whole branch was measured; each method is taken out of the champion when the run ends"


@dataclass(frozen=True)
class Word:
    """The law's word on a champion."""

    decision: Decision | None
    verdict: Verdict
    reason: str


def pasts(idea: Idea, trial: Trial, champion: int, number: int, base: str, word: Word) -> list[PastExperiment]:
    """One line for each method of the champion, in the order in which they were made.

    The first has the number of the iteration, and every branch that lost and is no part of the champion. What was
    measured stands with the last, whose commit it is of; those before it say whom they were measured with.
    """
    methods = idea.methods(champion, base)
    raced = list(zip(idea.proposal.variants, trial.raced.gains, strict=True)) if len(idea.commits) > 1 else []
    screened = tuple((variant.parameters, gain) for variant, gain in raced)
    inside = range(idea.plain, champion + 1)  # beginnings of the champion's stack, and the champion, when it is stacked
    beside = tuple(one for branch, one in enumerate(screened) if branch not in inside)
    own = screened[champion : champion + 1]
    whole = " and ".join(one.plan.technique for one in methods)
    found: list[PastExperiment] = []
    for place, method in enumerate(methods, start=1):
        overall = word.decision.overall if word.decision and place == len(methods) else None
        found.append(
            PastExperiment(
                id=f"iterv{number}" if place == 1 else f"iterv{number}-{place}",
                agent=AGENT,
                role=idea.role,
                plan=method.plan,
                parameters=method.parameters,
                verdict=word.verdict,
                reason=word.reason if len(methods) == 1 else f"{whole} in one branch: {word.reason}",
                gain=overall.gain if overall else None,
                low=overall.low if overall else None,
                high=overall.high if overall else None,
                base=method.base,
                commit=method.commit,
                screened=beside if place == 1 else own if place == len(methods) else (),
            )
        )
    return found


def attribute(
    session: Session, number: int, methods: Sequence[Method], seen: Measurement, decision: Decision | None, kept: bool
) -> None:
    """``attribution.json``: the champion against the best before it, and, for several methods, a line for each."""
    staged, suffix = session.folder.staging(number), session.options.baseline.suffix
    name = " + ".join(one.plan.technique for one in methods)
    ablated = f"ablations/{_folder(name)}/kernel{suffix}"
    write_text(staged / ablated, session.source_of(session.best))
    without, ours = (records.average_ms(seen, session.full, side) for side in ("base", "candidate"))
    measured = without is not None and ours is not None
    rows: list[dict[str, Any]] = [
        {
            "method_id": name,
            "ablated_kernel": ablated,
            "ablated_ms": without,
            "champion_ms": ours,
            "attribution_ms": without - ours if without is not None and ours is not None else None,
            "attribution_pct": 100.0 * (without / ours - 1.0) if without is not None and ours is not None else None,
            "contributed": kept if measured and decision and decision.state in ("keep", "revert") else None,
            "status": "measured" if measured else "inconclusive",
            "interval": records.ratio(decision.workloads[session.full] if decision else None),
            "note": _ALONE if len(methods) == 1 else "all methods of the branch together; " + _ALONE,
        }
    ]
    if len(methods) > 1:
        rows += [_waiting(one.plan.technique) for one in methods]
    told = {"iter": number, "champion_ms": ours, "noise_threshold_pct": session.options.noise_threshold_pct}
    write_json(staged / "attribution.json", {**told, "attributions": rows})


def _waiting(technique: str) -> dict[str, Any]:
    return {"method_id": technique, "contributed": None, "status": "inconclusive", "note": _TOGETHER}


def _folder(name: str) -> str:
    return name.replace(".", "_").replace("/", "_").replace(" + ", "+")
