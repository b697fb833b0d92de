"""The champion without each of its methods, once a run has kept more than one: what is owed to which of them.

Trees are made by ``team.evidence.removal`` and measured by ``team.evidence.ablation``: pairs, the same shapes, the same
protocol as every decision of the run. The newest method needs none of it where it came alone: its iteration measured
just that.
"""

import json
from collections.abc import Iterator
from math import exp
from typing import Any

from protocol.messages import Decision, Outcome, PastExperiment
from protocol.methods import Ablation, SassCheck, Status, attributed, sorted_methods
from team.evidence.ablation import Ablated, Trial, Without, ablate
from team.evidence.removal import Change, removed
from team.optimize import records
from team.optimize.artifacts import write_json, write_text
from team.optimize.evidence import NOT_APPLICABLE
from team.optimize.session import Session

SECONDS = 300.0  # after which no further method is begun: what is left is inconclusive


def ablate_champion(session: Session) -> None:
    """Measure, write into the champion's folder, and sort the kept methods anew."""
    kept = [past for past in session.state.experiments if past.verdict.kept]
    champion = session.state.global_champion
    if len(kept) < 2 or champion is None:
        return
    trial = Trial(
        session.judge,
        session.trusted,
        session.snapshot(session.best),
        session.weights,
        session.state.noise,
        session.policy,
        _built_to(session, champion.iter),
    )
    named = dict(_labelled(kept))
    path = session.folder.iteration(champion.iter) / "attribution.json"
    told = json.loads(path.read_text())
    found: dict[str, Ablation] = {}
    rows: list[dict[str, Any]] = []
    if newest := _measured_alone(session, named):
        found[newest] = _as_measured(session, newest, named[newest])
        rows.append({**told["attributions"][0], "method_id": newest, "status": found[newest].contribution.value})
    trees = [_without(session, name, past) for name, past in named.items() if name != newest]
    for without, one in zip(trees, ablate(trial, trees, SECONDS), strict=True):
        found[without.method] = one.ablation
        rows.append(_row(session, without.method, one))
    for name in named:
        session.say(f"without {name}: {found[name].contribution.value.replace('_', ' ')}; {found[name].why}")
    rows.sort(key=lambda row: list(named).index(str(row["method_id"])))
    write_json(path, {**told, "champion_without_each": rows})
    _sort_anew(session, named, found)


def _built_to(session: Session, number: int) -> str:
    """Hash of what the champion of an iteration was built to; empty where no build is on record."""
    kept = session.folder.iteration(number) / "kernel.build.json"
    return str(json.loads(kept.read_text())["artifact"]) if kept.is_file() else ""


def _measured_alone(session: Session, named: dict[str, PastExperiment]) -> str:
    """The one method of the champion's own iteration: it was measured against the champion without it. Or nothing."""
    newest = [name for name, past in named.items() if _iteration_of(past) == _iteration_of(list(named.values())[-1])]
    return newest[0] if len(newest) == 1 and named[newest[0]].commit == session.best else ""


def _as_measured(session: Session, name: str, past: PastExperiment) -> Ablation:
    told = json.loads((session.folder.iteration(_iteration_of(past)) / "bench.json").read_text())
    decision = Decision.model_validate(told["decision"])
    how = "the best before it, as its iteration measured it"
    return attributed(name, Outcome.MEASURED, "", decision, past.base, how)


def _labelled(kept: list[PastExperiment]) -> Iterator[tuple[str, PastExperiment]]:
    """Each kept experiment under its technique, with its iteration where one technique was kept more than once."""
    techniques = [past.plan.technique for past in kept]
    for past in kept:
        name = past.plan.technique
        yield name if techniques.count(name) == 1 else f"{name}@{past.id}", past


def _without(session: Session, name: str, past: PastExperiment) -> Without:
    hub, editable = session.hub, session.spec.editable_files
    before, after, champion = (hub.read(editable, commit) for commit in (past.base, past.commit, session.best))
    made = removed(Change(past.id, past.plan, before, after, champion, past.parameters))
    if not made.files:
        return Without(name, None, made.how)
    trailers = {"Without": past.id, "Technique": past.plan.technique}
    commit = hub.commit(session.best, made.files, f"Without: {past.plan.change}", trailers, editable)
    hub.anchor(f"ablations/{past.id}/{commit[:16]}", commit)
    return Without(name, session.snapshot(commit), made.how, commit)


def _row(session: Session, name: str, one: Ablated) -> dict[str, Any]:
    """One line of ``attribution.json``; the tree without the method goes beside it."""
    ablation, seen = one.ablation, one.measurement
    champion = session.state.global_champion
    folder = session.folder.iteration(champion.iter if champion else 0) / "ablations" / name.replace("/", "_")
    kernel = f"kernel{session.options.baseline.suffix}"
    if ablation.without:
        write_text(folder / kernel, session.source_of(ablation.without))
    if seen is not None:
        write_json(folder / "bench.json", records.bench(session.subject(kernel), seen, "base"))
    contributed = {"contributed": True, "not_contributed": False}.get(ablation.contribution.value)
    return {
        "method_id": name,
        "ablated_kernel": f"ablations/{folder.name}/{kernel}" if ablation.without else "",
        "ablated_ms": records.average_ms(seen, session.full, "base") if seen else None,
        "champion_ms": records.average_ms(seen, session.full, "candidate") if seen else None,
        "attribution_pct": 100.0 * (exp(ablation.gain.gain) - 1.0) if ablation.gain else None,
        "interval": records.ratio(ablation.gain),
        "contributed": contributed,
        "status": ablation.contribution.value,
        "note": f"{ablation.how}; {ablation.why}" if ablation.how else ablation.why,
    }


def _sort_anew(session: Session, named: dict[str, PastExperiment], found: dict[str, Ablation]) -> None:
    """The kept methods into the lists that their ablations say, out of those that their iterations said."""
    state = session.state
    checks = {name: _checked(session, past) for name, past in named.items()}
    lists = sorted_methods(found, found, checks)
    gone = {past.plan.technique for past in named.values()} | set(named)
    state.effective_methods = [one for one in state.effective_methods if one["method"] not in gone]
    for name in ("ineffective_methods", "implementation_failed_methods", "unverified_methods"):
        setattr(state, name, [one for one in getattr(state, name) if one not in gone])
    for name in lists.effective:
        gain = found[name].gain
        state.effective_methods.append({"method": name, "speedup": exp(gain.gain) if gain else None})
    state.ineffective_methods += lists.ineffective
    state.implementation_failed_methods += lists.implementation_failed
    state.unverified_methods += lists.unverified


def _checked(session: Session, past: PastExperiment) -> SassCheck:
    """What the machine code said in the iteration that made the change."""
    told = json.loads((session.folder.iteration(_iteration_of(past)) / "sass_check.json").read_text())
    for check in map(SassCheck.model_validate, told["checks"]):
        if check.method == past.plan.technique:
            return check
    status = Status.NOT_APPLICABLE if session.options.language == "cpp" else Status.INCONCLUSIVE
    return SassCheck(method=past.plan.technique, status=status, why=told.get("note", NOT_APPLICABLE))


def _iteration_of(past: PastExperiment) -> int:
    """The iteration of a line of history; further methods of one branch are numbered behind a dash."""
    return int(past.id.removeprefix("iterv").partition("-")[0])
