"""Break each rule of the law, one at a time, in a copy of the tree, and require that its tests go red.

    python scripts/mutate_law.py [WORD] [--processes 2] [--json FILE]     only mutations whose rule or file holds WORD
    python scripts/mutate_law.py --stands                                 only: does each rule still stand in its file?

Each rule's own tests run, two rules at a time, each in a copy of its own. A mutation that survives is a rule that no
test holds: its name is printed and the exit status is 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("protocol", "roles", "team", "scripts", "benchmarks", "tests", "pyproject.toml")
NO_SHRINKING = """
from hypothesis import Phase, settings
settings.register_profile("red is enough", phases=[Phase.explicit, Phase.generate], database=None)
settings.load_profile("red is enough")
"""


@dataclass(frozen=True)
class Mutation:
    """Replace ``old`` (which stands once in ``path``) by ``new``; ``tests`` must fail then."""

    rule: str
    path: str
    old: str
    new: str
    tests: str


def law(rule: str, name: str, old: str, new: str, tests: str = "") -> Mutation:
    return Mutation(rule, f"protocol/{name}.py", old, new, f"tests/protocol/test_{tests or name}.py")


def work(rule: str, path: str, old: str, new: str, tests: str) -> Mutation:
    return Mutation(rule, path, old, new, f"tests/{tests}.py")


def core(rule: str, old: str, new: str) -> Mutation:
    return Mutation(rule, "team/coordination.py", old, new, "tests/team/test_coordination.py")


MUTATIONS = (
    law("tampered", "verdict", "Outcome.TAMPERED: Verdict.TAMPERED", "Outcome.TAMPERED: Verdict.REVERT"),
    law("build failed", "verdict", "BUILD_FAILED: Verdict.BUILD_FAILED", "BUILD_FAILED: Verdict.REVERT"),
    law("incorrect", "verdict", "Outcome.INCORRECT: Verdict.INCORRECT", "Outcome.INCORRECT: Verdict.REVERT"),
    law("crashed", "verdict", "Outcome.CRASHED: Verdict.CRASHED", "Outcome.CRASHED: Verdict.REVERT"),
    law("timeout", "verdict", "Outcome.TIMEOUT: Verdict.TIMEOUT", "Outcome.TIMEOUT: Verdict.REVERT"),
    law("any workload incorrect", "verdict", "if not check.worst <= 1.0:", "if False:"),
    law("all workloads compared", "verdict", "if missing or not compared:", "if False:"),
    law("keep", "verdict", 'if decision.state == "keep":', "if False:"),
    law("keep needs proof", "verdict", 'if decision.state == "keep":', 'if decision.state != "revert":'),
    law("keep simpler", "verdict", "if simpler and", "if False and"),
    law("simpler is flat", "verdict", "and _flat(decision, policy):", ":"),
    law("simpler after a look", "verdict", 'decision.state != "continue" and ', ""),
    law("simpler spares workloads", "verdict", "and spared", ""),
    law("simpler flat band", "verdict", "and overall.gain > log1p(-policy.simpler_flat_band)", ""),
    law("unresolved", "verdict", "return Verdict.UNRESOLVED, decision", "return Verdict.REVERT, decision"),
    law("lost counts nothing", "state", "if body.verdict is Verdict.LOST:\n", "if False:\n", "stopping"),
    law("search after three", "counters", "agent.owes_search, streaks.since_search = True, 0", "pass"),
    law("keep clears the streak", "counters", "streaks.without_keep = streaks.since_search = 0", "pass"),
    law("credit", "counters", "    _credit(state, agent, experiment.plan)\n", ""),
    law("credit to the source", "counters", "source = plan.source or cited.sources[0].locator",
        "source = cited.sources[0].locator"),
    law("credit where it is due", "counters", " or not (plan.source or plan.technique == cited.technique):", ":"),
    law("a source that was read", "admission", "if plan.source and plan.source not in", "if () and plan.source not in"),
    law("sources with a locator", "messages", 'locator: str = Field(min_length=1, ', 'locator: str = Field(',
        "admission"),
    law("queries", "messages", "queries: tuple[str, ...] = Field(min_length=1)", "queries: tuple[str, ...]",
        "admission"),
    law("approach in every round", "directions", "found.claim.follows:\n        ident", "False:\n        ident"),
    law("outside is closed", "counters", "*state.closed, *outside}", "*state.closed}", "directions"),
    law("closed elsewhere", "counters", "mine - directions.outside(state, agent.member.name)", "mine", "directions"),
    law("compute or bandwidth", "profiling", "if max(compute, memory) > policy.bound_above:", "if False:"),
    law("balanced", "profiling", "if max(compute, memory) >= policy.idle_below:", "if False:"),
    law("occupancy", "profiling", "if occupancy < policy.few_warps_below:", "if False:"),
    law("latency", "profiling", "Position.LATENCY if occupancy > policy.many_warps_above else ", ""),
    law("position by profile", "profiling", "if report.position is Position.UNKNOWN:", "if False:"),
    law("abandon", "counters", "state.abandoned.append(approach)", "pass"),
    law("crashes in a row", "counters", "state.crash_streaks.pop(name, None)", "pass"),
    law("category reverts in a row", "counters",
        "streaks.category_reverts + 1 if same else 1", "streaks.category_reverts + 1"),
    law("keep opens the category", "counters", 'streaks.category, streaks.category_reverts = "", 0', "pass"),
    law("profile duty", "counters", "agent.owes_profile = experiment.commit", "pass"),
    law("five percent", "counters", "gain >= policy.profile_gain", "gain > 0"),
    law("fractions, not logs", "counters", "gain = expm1(experiment.overall.gain)", "gain = (experiment.overall.gain)"),
    law("rewrite to early", "counters", "streaks.early_from = streaks.experiments", "pass"),
    law("rewrite only", "counters", "if experiment.plan.rewrite and", "if"),
    law("plateau by small keeps", "counters", "streaks.small_keeps >= policy.plateau_after or ", ""),
    law("plateau by reverts", "counters", " or streaks.without_keep >= policy.plateau_after", ""),
    law("revert ends small keeps", "counters", "    streaks.small_keeps = 0\n", ""),
    law("mid", "counters", "if age < policy.mid_from:", "if True:"),
    law("late", "counters", "Phase.MID if age < policy.late_from else Phase.LATE", "Phase.MID"),
    law("closed category", "counters", ">= policy.close_category_after", ">= 10**6"),
    law("search blocks plans", "admission", "if agent.owes_search:", "if False:"),
    law("abandoned is refused", "admission", "if plan.technique in abandoned_in(state, agent):", "if False:"),
    law("switch category", "admission", "if plan.category in closed_categories(", "if () and closed_categories("),
    law("cite the search", "admission", "if agent.search is not None and", "if False and"),
    law("cite a real search", "admission", "if plan.cites and", "if False and"),
    law("say what differs", "admission", "if not plan.differs and plan.technique in", "if False and plan.technique in"),
    law("baseline first", "duties", "(agent) not in state.baselines:", "(agent) in ():"),
    law("await baselines", "duties", "if not ends and _awaits", "if False and _awaits"),
    law("not for ever", "duties", "return not agent.alive and now", "return False and now"),
    law("experiment budget", "duties", "if policy.max_experiments is not None and", "if False and"),
    law("clock budget", "duties", "if policy.max_minutes is not None and", "if False and"),
    law("idle time is free", "duties", " - idle >=", " >="),
    law("a pause is free", "duties", " + state.paused_for(now)", "", "steering"),
    law("paused", "duties", "if state.paused and not", "if False and not", "steering"),
    law("a stop ends a pause", "duties", "if state.paused and not ends:", "if state.paused:", "steering"),
    law("wrap-up drains", "duties", " or state.wrap_up:", ":", "steering"),
    law("a pause costs no time", "state", "state.idle_time += state.paused_for(event.time)", "pass", "steering"),
    law("resuming ends a pause", "state", "state.paused_for(state.last_time)\n    state.paused = \"\"",
        "state.paused_for(state.last_time)", "steering"),
    law("a wrap-up is carried out", "state", 'state.wrap_up = "" if state.finished else state.wrap_up',
        'state.wrap_up = ""', "steering"),
    law("a done wrap-up is over", "state", 'state.wrap_up = "" if state.finished else state.wrap_up',
        "pass", "steering"),
    law("requests count once", "steering", "() if state.paused else", "() if False else"),
    law("money budget", "duties", "if spent := money.spent_up(state):", "if spent := \"\":"),
    law("stop", "duties", "or state.stop or", "or"),
    law("nothing after the end", "duties", "state.finished or state.baseline_refused", "state.baseline_refused"),
    law("owed search is no end", "duties", "done = not agent.owes_search and", "done ="),
    law("drain", "duties", "return not (state.landings or state", "return not (state"),
    law("search duty", "duties", "if agent.owes_search:", "if False:"),
    law("profile duty is given", "duties", "if commit := profiling.owed(state, name):", "if commit := '':"),
    law("round remeasure", "duties", "if state.rounds > state.measured_in_round", "if False"),
    law("last word", "duties", "state.index.busy() or _owes_last_word(state))", "state.index.busy())"),
    law("verify elsewhere", "duties", "if elsewhere and", "if False and"),
    law("verify at home when alone", "duties", "if elsewhere and", "if"),
    law("stopped agents verify nothing", "duties", "and not (agent.open and isinstance(agent.open.duty, Stop))", ""),
    law("verify once", "duties", "or _being_handled(state, landing):", ":"),
    law("exhausted rests", "duties", "if _exhausted(state, name):", "if False:"),
    law("lost is not spent", "duties", "len(state.experiments) - state.lost", "len(state.experiments)"),
    law("round length", "rounds", ">= state.policy.round_experiments", ">= 10**6"),
    law("recap order", "rounds", "state.experiments[id_] for id_ in state.verdicts[state.round_from :]",
        "e for e in state.judged[state.round_from :]"),
    law("rounds by the clock", "rounds", "return judged > 0 and now", "return False and now"),
    law("a round has a verdict", "rounds", "return judged > 0 and now", "return now"),
    law("outcome A", "rounds", 'return "D" if stay else "A"', 'return "D"'),
    law("outcome B", "rounds", "if len(wins) > 1:", "if False:"),
    law("outcome C searches", "rounds", 'if outcome == "C" else ()', "if False else ()"),
    law("outcome D keeps a base", "rounds", "={name: state.head_of(name) for name in stay}", "={}"),
    law("once only", "rounds", " and not again", ""),
    law("refused is no win", "rounds", ' and not experiment.landing.startswith("refused")', ""),
    law("dry rounds", "rounds", "expm1(one.best) <= state.policy.dry_gain", "False"),
    law("a round cut short is not dry", "rounds", "if not one.stuck]", "]"),
    law("clear winner", "rounds", "len(alone) == 1 and", "False and"),
    law("kept base", "record", "return kept if kept and", "return kept if False and", "rounds"),
    law("nobody's guest", "directions", "owner = of_others(state, agent).get(category)", "owner = None"),
    law("the sweep is left to nobody", "sweep", "may = _unheld_by_others if leaving else open_to", "may = open_to",
        "directions"),
    law("a person ends the rounds", "steering", 'if request.kind == "end-rounds":', "if False:"),
    law("overlap is refused", "directions", "if holder is not None and holder.owner != agent:", "if False:"),
    law("nothing left", "directions", "if mine is None or empty.issuperset(mine.claim.allowed):", "if mine is None:"),
    law("gone owners", "directions", "if not owner.alive and now", "if False and now"),
    law("nearest first", "findings", "(*first, *_elsewhere(state, near, most))",
        "(*_elsewhere(state, near, most), *first)"),
    law("refused plans cost", "state", "tries += 1\n    _pay(state, event.agent, body.dollars)", "tries += 1",
        "duties"),
    law("head of an agent", "record", "if not waiting:", "if True:", "duties"),
    law("words, never code", "steering", "if _CODE.search(request.words):", "if False:"),
    law("a direction for somebody", "steering", "if request.agent not in state.agents:", "if False:"),
    law("the same direction once", "steering", "if mine and (", "if False and ("),
    law("prefer after two", "memory", "if not negatives and positives < policy.prefer_after:", "if False:"),
    law("caution after any", "memory", '"caution" if negatives else "prefer"', '"prefer"'),
    law("landing is evidence", "memory",
        "if (verified := _verified(experiment)) is not None:", "if False:"),
    law("polish is no evidence", "memory", " and name not in kept", ""),
    law("ablation is evidence", "memory", "return [*found, *_ablated(state)]", "return found", "methods"),
    law("what proves nothing teaches nothing", "memory", "if names[ident] in (*lists.effective, *lists.ineffective):",
        "if True:", "methods"),
    law("ablations of this main", "ablations", " if one.commit == state.main", "", "methods"),
    law("effective by both proofs", "methods", "if not seen or ablation is None", "if ablation is None", "methods"),
    law("not in the machine code", "methods", "if check is not None and check.status is Status.FAIL:", "if False:",
        "methods"),
    law("undecided contributes nothing", "methods", 'if decision.state == "keep":',
        'if decision.state in ("keep", "unresolved"):', "methods"),
    law("the sanitizer refuses", "landings", 'if one.status == "found"]', "if False]", "methods"),
    law("unchecked refuses nothing", "landings", 'one.status == "found"]', 'one.status != "clean"]', "methods"),
    law("goes on with its runs", "submission", "if not s.over and", "if"),
    law("verified on its SKU", "duties", "allow_mixed and not _may_verify(", "allow_mixed and () and (",
        "mixed_skus"),
    law("levels of one SKU", "record", "if self.policy.allow_mixed:", "if False:", "mixed_skus"),
    law("durable", "ledger", 'self._db.execute("COMMIT")', "pass"),
    law("one transaction", "ledger", 'self._db.execute("BEGIN IMMEDIATE")', "pass"),
    law("newer schema", "ledger", "if schema > SCHEMA:", "if False:"),
    law("wire: extensions", "wire", "ext_hook=_no_extension", "ext_hook=msgpack.ExtType"),
    law("wire: cap", "wire", "if size > limit:", "if False:"),
    law("only verified commits land", "landings", "return _kept(state, landing, reason) if verdict.kept else",
        "return _kept(state, landing, reason) if True else"),
    law("verified against the present main", "landings", "if landing.main != state.main:", "if not landing.main:"),
    law("a merge beats the better parent", "landings", "_ahead(state, experiment) > gain.low", "False"),
    law("one measurement where one will do", "landings", "_ahead(state, experiment) > gain.low", "True"),
    law("the author's tree must beat the merge", "landings", "if verdict is not Verdict.KEEP:", "if False:"),
    law("the author's tree may beat the merge", "landings", "if verdict is not Verdict.KEEP:", "if True:"),
    law("the author's tree after a bad merge", "landings", "_ahead(state, experiment) > 0.0", "False"),
    law("whole trees after a bad resolution", "landings", 'landing.how == "resolved"', "False"),
    law("whole trees after no resolution", "landings",
        'return Prepare(experiment, landing.main, "whole tree", experiment.commit)', "return None"),
    law("both measurements count", "landings", "combine([first, _gain(measured)])", "_gain(measured)"),
    law("bad pairs", "landings", "if not others:", "if True:"),
    law("undecided is not bad", "landings", "() if verdict is Verdict.UNRESOLVED else ", ""),
    law("bad pairs are refused", "admission", "if not plan.differs and (pair", "if False and (pair", "landings"),
    law("unless something differs", "admission", "if not plan.differs and (pair", "if (pair", "landings"),
    law("the very change", "admission", ".plan) and _same(theirs, plan):", ".plan):", "landings"),
    law("minds see bad pairs", "briefing", "for pair in state.bad_pairs", "for pair in ()", "landings"),
    law("a whole tree drops the rest", "state", "state.experiments[body.experiment].base if whole else body.before",
        "body.before", "landings"),
    law("conflicts go to a mind", "duties", "return _resolve(state, landing) if", "return None and", "landings"),
    law("one mind at a time", "duties", "VerifyLanding | ResolveMerge) and", "VerifyLanding) and", "landings"),
    Mutation("main moves with a proof", "team/workspace/hub.py", "if now != proof.before or not", "if not",
             "tests/team/workspace/test_hub.py"),
    Mutation("main moves forward", "team/workspace/hub.py",
             "now != proof.before or not self.is_ancestor(now, proof.commit)", "now != proof.before",
             "tests/team/workspace/test_hub.py"),
    Mutation("editable files only", "team/landing.py", "if foreign := ", "if foreign := set() and ",
             "tests/team/test_landing.py"),
    law("money of experiments is reserved", "money", "2 * len(open_now(\"experiment\"))", "0"),
    law("money of searches is reserved", "money", "_ALONE = (\"search\", ", "_ALONE = ("),
    law("money of merges is reserved", "money", "+ len(state.landings)", ""),
    law("search waits for money", "duties", "and not money.search_is_affordable(state)", "and False", "money"),
    law("experiment waits for money", "duties", "not money.experiment_is_affordable(state)", "False", "money"),
    law("a failed commit is the last", "journal", "self._failed = error", "pass"),
    law("a snapshot of another law", "ledger", "WHERE code = ?", "WHERE ? != ''", "snapshot"),
    law("a harmed snapshot", "ledger", "any(_digest(body) != told for body, told in parts)", "False", "snapshot"),
    law("a snapshot of other events", "ledger", "_digest(found[1], newest) != found[2]", "False", "snapshot"),
    law("told once", "briefing", "return max(since, ", "return max(0, ", "briefing"),
    law("who has nothing left is not asked for ever", "directions",
        "if mine is None or (mine.claim.owner != agent and has_nothing_left(state, agent)):", "if mine is None:"),
    law("all of its own", "briefing", "bisect_left(own, newest)", "0", "briefing"),
    core("paid once", "if before is not None and (before.plan", "if False and (before.plan"),
    core("zombies", "if not asker.alive or asker.incarnation != incarnation:", "if False:"),
    law("team search", "stuck",
        "agent.owes_search, agent.streaks.since_search, agent.streaks.since_fresh = True, 0, 0", "pass", "stopping"),
    law("all at once", "stuck", " and all(_has_no_idea(state, name) for name in index.fresh)", "", "stopping"),
    law("submission proposed", "stuck", "if times < state.policy.ceiling_after or", "if True or", "stopping"),
    law("a keep is no ceiling", "stuck", 'state.stuck_in_a_row, state.proposed = 0, ""', "pass", "stopping"),
    law("target exceeded", "stopping", "if not _target_exceeded(state):", "if False:"),
    law("beyond doubt", "stopping", "last.estimate.low > log(target)", "last.estimate.high > log(target)"),
    law("of this main", "stopping", "or last.commit != state.main", ""),
    law("reverts before the end", "stopping", "if tail.reverts < policy.stop_after_reverts or", "if"),
    law("directions before the end", "stopping", "or len(tail.directions) < policy.stop_after_directions", ""),
    law("searched before the end", "stopping", "if not tail.searched or", "if"),
    law("swept before the end", "stopping", "or not exhausted(state)", ""),
    law("heavy lift", "plateau", "return () if plan.technique in lifts else", "return () if True else", "forcing"),
    law("excused lift", "plateau", "if lift not in excused", "if True", "forcing"),
    law("only on a plateau", "plateau", "is not Phase.PLATEAU", "is None", "forcing"),
    law("sweep order", "sweep", "if plan.sweep != first.name:", "if False:", "forcing"),
    law("sweep techniques", "sweep", "if first.techniques and", "if False and", "forcing"),
    law("a keep ends the sweep", "sweep", "        agent.sweeping = False\n", "", "forcing"),
    law("sweep passed over", "sweep", "if item.name not in passed)", "if True)", "forcing"),
    law("re-check", "duties", "if agent.owes_rechecks:\n", "if False:\n", "forcing"),
    law("open until re-checked", "recheck", "        state.reverted.discard(plan.technique)\n", "", "forcing"),
    law("closed after a re-check", "recheck", "state.reverted.add(report.technique)", "pass", "forcing"),
    law("an orthogonal fault", "messages", "return not self.suspect", "return True", "forcing"),
    law("research on sameness", "research", "and spread < policy.research_within", "and False", "forcing"),
    law("research on errors", "research",
        "elif len(agent.incorrect) >=", "elif () and len(agent.incorrect) >=", "forcing"),
    law("research is told", "research",
        "state.insights = [*state.insights, *report.insights]", "state.insights = [*state.insights]", "forcing"),
    law("blind plans", "profiling", "if not commit:\n        return None", "return None", "failure_modes"),
    law("attribution", "failure_modes", "if not plan.rewrite and changed", "if False and changed"),
    law("a rewrite is attributed", "failure_modes", "if not plan.rewrite and changed", "if changed"),
    law("hidden workloads", "failure_modes", 'state.symptoms.hidden[name] = f"kept', 'f"kept'),
    law("drift of errors", "failure_modes", "worst >= policy.error_near_tolerance", "False"),
    law("far from the tolerance", "failure_modes", " and worst >= policy.error_near_tolerance", ""),
    law("closed to the team", "admission", "if plan.category in state.closed:", "if False:", "failure_modes"),
    law("duplicates refused", "failure_modes", "if agent == name or plan.differs:", "if True:"),
    law("duplicates told", "failure_modes", "if first[0] != experiment.agent:", "if False:"),
    law("polish", "counters", "if streaks.polish >= policy.polish_after", "if False", "failure_modes"),
    law("chased noise", "failure_modes", "if chased[device] >= state.policy.chased_after:", "if False:"),
    law("drifted main", "failure_modes", "        if apart:\n", "        if False:\n"),
    law("calibrated again", "duties",
        "if state.device_of(agent) in state.recalibrate and", "if False and", "failure_modes"),
    work("idle devices", "team/devices/cuda.py", "    _refuse_busy(chosen)\n", "", "team/test_phase_a"),
    work("less than 5 % busy", "team/devices/cuda.py", "busy_percent < IDLE_PERCENT and ", "", "team/test_phase_a"),
    work("90 % of the memory free", "team/devices/cuda.py", " and free_bytes > FREE_SHARE * total_bytes", "",
         "team/test_phase_a"),
    work("one kind of device", "team/devices/cuda.py", "if not allow_mixed:", "if False:", "team/test_phase_a"),
    work("one agent per device", "team/devices/cuda.py", "if not 1 <= count <= len(seen):", "if False:",
         "team/test_phase_a"),
    work("hardware by the user's file", "team/devices/hardware.py", "**_read(file), ", "", "team/test_phase_a"),
    work("peaks are measured", "team/devices/hardware.py", ', "peaks": found.peaks}', "}", "team/test_phase_a"),
    work("peaks by UUID", "team/devices/peaks.py", 'f"{uuid}.json"', '"peaks.json"', "team/test_cuda_devices"),
    work("unknown settings", "protocol/policy.py", 'extra="forbid"', 'extra="ignore"', "team/test_phase_a"),
    work("known broken is in no verdict", "team/tasks/spec.py", " if workload.name not in self.broken", "",
         "team/test_phase_a"),
    work("operator block", "team/report/setup.py", "started.problem.rows() if started.problem else []", "[]",
         "team/report/test_report_setup"),
    work("hardware block", "team/report/setup.py", "started.hardware.rows() if started.hardware else []", "[]",
         "team/report/test_report_setup"),
    work("known broken is listed", "team/report/setup.py", "BROKEN: list(started.known_broken.items()),", "",
         "team/report/test_report_setup"),
    work("scope: must pass", "team/report/setup.py", '("must pass", ", ".join(must_pass)),', "",
         "team/report/test_report_setup"),
    work("scope: budget", "team/report/setup.py", '("budget", _budget(policy)),', "", "team/report/test_report_setup"),
    work("scope: tooling", "team/report/setup.py", '("tooling", ", ".join(tooling)),', "",
         "team/report/test_report_setup"),
    work("confirmed", "team/console.py", "if costly := [", "if costly := () and [", "team/test_consent"),
    law("a refused baseline ends it", "duties", "state.baseline_refused or state.stop", "state.stop"),
    law("plan fields", "messages", 'disproof: str = Field(min_length=1, ', 'disproof: str = Field(default="", ',
        "admission"),
    law("noise raises the threshold", "sequential", "max(log1p(policy.threshold), noise.floor if noise else 0.0)",
        "log1p(policy.threshold)"),
    work("a raised threshold is told", "team/report/status.py", "max(math.log1p(state.policy.threshold), noise.floor)",
         "math.log1p(state.policy.threshold)", "team/report/test_report_setup"),
    law("measured every so often", "duties", "if len(state.verdicts) - state.measured_at >=", "if False and 0 >="),
    law("research is given", "duties", "research = state.owes_research and", "research = '' and", "forcing"),
    work("the cell names the moves", "roles/techniques/matrix.py", "for name in MOVES[where, phase])",
         "for name in MOVES[where, Phase.LATE])", "roles/test_matrix"),
    work("the sweep's own order", "roles/techniques/matrix.py", "        for each in SWEEP\n",
         "        for each in reversed(SWEEP)\n", "roles/test_matrix"),
    law("by role", "directions", "other = state.categories[category].role is not", "other = () is not"),
    law("what it must not touch", "directions", "forbidden=tuple(name for name in held if name not in share)",
        "forbidden=()"),
    law("recap per agent", "rounds", "return (*agents, *failure_modes", "return (*failure_modes"),
    law("one-sided", "rounds", "if not wins or best >= log1p(state.policy.one_sided_gain):", "if not wins:"),
    work("tags of rounds", "protocol/rounds.py", "for number, commit in enumerate(state.round_mains, 1)}",
         "for number, commit in ()}", "team/workspace/test_scribe"),
    work("tags of branches", "protocol/rounds.py", "return named | {", "return named or {",
         "team/workspace/test_scribe"),
    work("notes of rounds", "team/report/notes.py", "    texts.update(round_notes(state))\n", "",
         "team/workspace/test_scribe"),
    law("findings are told", "briefing", "findings=ranked(state, agent_name),", "", "findings"),
    law("negative findings", "findings", "verdict is None or verdict is Verdict.LOST:",
        "verdict is None or not verdict.kept:"),
    law("where it was measured", "findings", 'device=measured.device if measured else "",', ""),
    law("whose commit", "findings", "        commit=experiment.commit,\n        source=f\"experiment",
        "        source=f\"experiment"),
    work("memory of its place", "team/memory.py", "self.find(**place.model_dump())", "self.find()",
         "team/test_strategy_memory"),
    work("full evaluations", "team/submission.py", "while len(current.runs) < wanted:", "while len(current.runs) < 1:",
         "team/test_submit_run"),
    work("all workloads correct", "team/submission.py", "self._refuse(started, unfit.why, unfit.workload)", "continue",
         "team/test_submit_run"),
    law("average of the runs", "submission", "fmean(values)", "max(values)"),
    work("the artifact", "team/submission.py", "shutil.copyfile(tree / name, folder / name)", "pass",
         "team/test_submit_run"),
    work("the tag", "team/workspace/submit.py", "        hub.tag(name, commit)\n        if not user",
         "        if False and not user", "team/test_submit_run"),
    work("pushed if asked", "team/submission.py", "        if to_remote:\n", "        if True:\n",
         "team/test_submit_run"),
    work("the submission's note", "team/report/submission_note.py", "_failures(state),", '"",',
         "team/report/test_report_submission"),
    work("the campaign's notes", "team/submission.py", 'f"refs/heads/{scribe.NOTES}"', "self._state.main",
         "team/test_submit_run"),
    work("log: verdict", "team/report/notes.py",
         '        experiment.verdict.value if experiment.verdict else "",\n        w.interval',
         '        "",\n        w.interval', "team/report/test_report_notes"),
    work("log: least", "team/report/notes.py", "w.ratio(min(gains))", "w.ratio(max(gains))",
         "team/report/test_report_notes"),
    work("log: next idea", "team/report/notes.py", '        plan.fallback if plan else "",\n', '        "",\n',
         "team/report/test_report_notes"),
    work("log: rewrites are marked", "team/report/notes.py",
         'f"rewrite: {change}" if experiment.plan.rewrite else change', "change", "team/report/test_report_notes"),
    work("log: append-only", "team/report/notes.py", "done = [state.experiments[ident] for ident in state.verdicts]\n",
         "done = [state.experiments[ident] for ident in reversed(state.verdicts)]\n",
         "team/report/test_report_notes"),
    work("log: staircase", "team/report/notes.py", "## Staircase of main", "##", "team/report/test_report_notes"),
    core("same ask", "if asker.open is not None and asker.open.ask == ask:", "if False:"),
    core("old ask", "if asker.last_ask == ask:", "if False:"),
    core("restart loses the open duty", 'lost = self._loss(agent, "its agent was restarted")', "lost = ()"),
    core("death loses the open duty", "self.record(agent, *self._loss(agent, why), ", "self.record(agent, "),
    core("resume loses open duties", '*lost.items()])', "])"),
    core("late reports", "if not self._is_open(agent, duty_id):\n            return\n        current", "current"),
    core("reports answer duties", "if not _answers(body, current.duty):", "if False:"),
    core("one plan", '"" if current.plan == plan else', '"" if True else'),
    core("admission", "why = refusal(self.state, agent, plan, current.base)", 'why = ""'),
    core("no gap", "        if not admitted:\n            return (body,)", "        return (body,)"),
    core("A/A finds nothing", "and body.null_kept:", "and False:"),
    core("rounds end", "if afresh or rounds.round_is_over(self.state, now):", "if False:"),
    core("the end", "why = duties.finished(self.state, now)\n        if why:", "if False:"),
)  # fmt: skip


def misplaced(mutations: Sequence[Mutation]) -> list[str]:
    """Rows of the table that the code has left behind: their text must stand exactly once in its file."""
    found = [(m, (ROOT / m.path).read_text().count(m.old)) for m in mutations]
    return [f"{m.rule}: {m.old!r} stands {count} times in {m.path}" for m, count in found if count != 1]


def survives(mutation: Mutation) -> bool:
    """Whether the rule's tests stay green without the rule, in this process' own copy."""
    tree = _copy()
    file = tree / mutation.path
    text = file.read_text()
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        return green(tree, mutation.tests)
    finally:
        file.write_text(text)


def intact(tests: Sequence[str]) -> bool:
    """Whether the tests of all rules pass while every rule stands."""
    return green(_copy(), *tests)


def green(tree: Path, *tests: str) -> bool:
    """Whether these tests pass in the copy. Bytecode is kept: without it most of a run is spent on compiling pytest's
    plugins."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(command, cwd=tree, env=kept | {"PYTHONPATH": str(tree)}, capture_output=True)
    return run.returncode == 0


def _work_in(folder: str) -> None:
    """Make this process' copy there: a worker of a pool runs no exit handlers that could take it away."""
    tempfile.tempdir = folder


@lru_cache(maxsize=1)
def _copy() -> Path:
    """A copy of the tree for this process, in the folder of the run, which goes with it."""
    tree = Path(tempfile.mkdtemp(dir=tempfile.tempdir))
    for part in PACKAGES:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / part)
    with (tree / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(NO_SHRINKING)
    return tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the result here, too")
    parser.add_argument("--stands", action="store_true")
    asked = parser.parse_args()
    chosen = [m for m in MUTATIONS if asked.word in m.rule or asked.word in m.path]
    if lost := misplaced(chosen):
        raise SystemExit("\n".join(lost))
    if asked.stands:
        return 0
    alive: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="kt-mutants-") as folder,
        ProcessPoolExecutor(asked.processes, initializer=_work_in, initargs=(folder,)) as processes,
    ):
        sound = processes.submit(intact, sorted({m.tests for m in chosen}))
        for mutation, survived in zip(chosen, processes.map(survives, chosen), strict=True):
            alive += [mutation.rule] if survived else []
            print("SURVIVES" if survived else "killed  ", mutation.rule, flush=True)
    if not sound.result():
        raise SystemExit("the tests are red without any mutation: mend them first")
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed", *(f"survivor: {rule}" for rule in alive), sep="\n")
    if asked.json:
        table = [{"rule": m.rule, "file": m.path, "tests": m.tests, "killed": m.rule not in alive} for m in chosen]
        told = {"rules": len(chosen), "killed": len(chosen) - len(alive), "survivors": alive, "table": table}
        asked.json.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
