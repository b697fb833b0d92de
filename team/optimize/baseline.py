"""The first half of a run: inputs understood, folder and state made, the baseline built, checked and calibrated."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from statistics import median
from typing import Any

from protocol.messages import Measurement
from protocol.policy import Policy
from protocol.problem import Problem
from team.campaign import merged_policy, read_campaign
from team.errors import UserError
from team.judge.failures import BaselineBroken
from team.judge.request import Calibrate, Check, Describe
from team.optimize import evidence, records
from team.optimize.artifacts import Folder, new_folder, write_json, write_text
from team.optimize.gates import Stopped, refuse_baseline
from team.optimize.hardware import cutlass_include
from team.optimize.matrix import WEIGHTS, read_matrix, workloads
from team.optimize.options import Options, notices
from team.optimize.session import Session
from team.optimize.state import Champion, State, Store
from team.tasks.apart import read_apart
from team.tasks.signature import SignatureError
from team.tasks.skill_folder import make_task
from team.tasks.skill_inputs import Read, SkillInputs
from team.tasks.spec import Workload

_CUTLASS = re.compile(r"cutlass::|cute::|#\s*include\s*[<\"](?:cutlass|cute)/")
_CUBLAS = re.compile(r"#\s*include\s*[<\"](?:cublas_v2|cublasLt)\.h[>\"]")
STABILITY = {"stable_cv": records.STABLE, "max_cv": records.BORDERLINE, "max_large_regression_pct": 5.0}


def policy_of(options: Options) -> Policy:
    """The law of a run: the bar may be raised and never lowered; K and compilations as asked; then the user's file."""
    asked: dict[str, object] = {
        "variants": options.branches,
        "compile_jobs": options.compile_jobs,
        "threshold": max(Policy().threshold, options.noise_threshold_pct / 100.0),
    }
    return merged_policy(Policy(), read_campaign(options.law), asked)


def prepare(options: Options, environment: dict[str, Any], say: Callable[[str], None]) -> tuple[Folder, Store]:
    """Folder, task and first state. ``Stopped`` when inputs or contract do not pass; then there is a folder, too."""
    folder = new_folder(options.baseline.resolve().parent)
    store = Store(folder, _first_state(options, folder, environment))
    store.save()
    write_json(folder.path / "env.json", environment)
    try:
        read, shapes, notes = _understood(options)
        store.state.notes = [*notices(options), *notes]
        for note in store.state.notes:
            say(note)
        make_task(read, folder.task, shapes, _libraries(options))
    except SignatureError as error:
        raise at_gate(folder, store, Stopped("setup", "baseline_contract_failed", str(error))) from None
    except UserError as error:
        raise at_gate(folder, store, Stopped("setup", "baseline_preflight_failed", str(error))) from None
    store.state.workload_matrix = [
        {"name": one.name, "dims": one.dims, "weight": one.weight, "bytes": read.bytes_of(one.dims)} for one in shapes
    ]
    store.state.signature = str(read.signature or "run_kernel(**inputs)")
    store.state.scale_weights = {one.name: one.weight for one in shapes}
    store.save()
    return folder, store


def at_gate(folder: Folder, store: Store, stopped: Stopped) -> Stopped:
    """Write down that a run ended at a gate; the same exception."""
    state = store.state
    state.run_status, state.generation_allowed = "stopped", False
    state.stop_reason, state.stop_stage, state.stop_iteration = stopped.reason, stopped.stage, stopped.iteration
    told = stopped.as_json(state.finished_iterations)
    state.terminal_iteration_status = str(told["iteration_status"])
    write_json(folder.path / "stop.json", told)
    store.save()
    from team.optimize.summary import write_summary

    write_summary(folder.path, state)
    return stopped


def _understood(options: Options) -> tuple[Read, tuple[Workload, ...], tuple[str, ...]]:
    _refuse_wrong_backend(options)
    read = read_apart(
        SkillInputs(
            kernel=options.baseline,
            reference=options.ref,
            dims=options.dims,
            scalars=options.scalars,
            shapes=options.shapes,
            ptr_size=options.ptr_size,
            atol=options.atol,
            rtol=options.rtol,
            numerics=options.numerics_mode,
        )
    )
    limits = options.max_working_set_mb, options.hard_working_set_mb
    matrix = read_matrix(options.workload_matrix)
    shapes, notes = workloads(read, options.archetype, matrix, limits, options.adaptive_downscale)
    return read, shapes, (*read.notes, *notes)


def _refuse_wrong_backend(options: Options) -> None:
    wanted, language = options.backend, options.language
    fits = {"auto": True, "cutlass": language == "cuda"}.get(wanted, wanted == language)
    if not fits:
        raise UserError(f"{options.baseline.name} is not for the backend '{wanted}'.", "Leave --backend out.")


def _libraries(options: Options) -> tuple[str, ...]:
    """Compiler flags for vendors' libraries that the baseline uses."""
    if options.language != "cuda":
        return ()
    source = options.baseline.read_text(errors="replace")
    flags: list[str] = []
    if options.backend == "cutlass" or _CUTLASS.search(source):
        include = cutlass_include()
        if include is None:
            raise UserError("The kernel uses CUTLASS and its headers are not found.", "Set CUTLASS_PATH.")
        flags.append(f"-I{include.resolve()}")
    if _CUBLAS.search(source):
        flags += ["-lcublas", "-lcublasLt"]
    return tuple(flags)


def _first_state(options: Options, folder: Folder, environment: dict[str, Any]) -> State:
    gpus = environment.get("gpus") or [{}]
    return State(
        run_dir=str(folder.path),
        baseline_file=f"baseline/{options.baseline.name}",
        baseline_file_original=str(options.baseline.resolve()),
        ref_file=str(options.ref.resolve()),
        iterations_total=options.iterations,
        ncu_num=options.ncu_num,
        branches=options.branches,
        noise_threshold_pct=options.noise_threshold_pct,
        ptr_size=options.ptr_size,
        gpu=options.gpu,
        gpu_uuid=str(gpus[0].get("uuid", "")),
        compile_jobs=str(options.compile_jobs or "auto"),
        numerics_mode=options.numerics_mode,
        archetype=options.archetype,
        validation_seeds=options.validation_seeds,
        max_working_set_mb=options.max_working_set_mb,
        hard_working_set_mb=options.hard_working_set_mb,
        adaptive_downscale=options.adaptive_downscale,
        oom_retries=options.oom_retries,
        timing_batches=options.timing_batches,
        timing_repeats=options.timing_repeats,
        scale_weights=WEIGHTS,
        stability_policy=STABILITY,
        profiling_policy={"policy": options.ncu_policy, "bundle": ""},
        hardware_attempts=int(environment.get("hardware_attempts", 1)),
        dims=options.dims,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        options=options,
    )


# ---------------------------------------------------------------- the baseline


def verify_baseline(session: Session) -> None:
    """Build, check and calibrate the kernel as it stands, and put its artifacts into ``baseline/``."""
    state, commit = session.state, session.hub.baseline
    tree = str(session.snapshot(commit))
    state.baseline_commit = commit
    checked = _preflighted(session, lambda: session.judge.check(Check(task=str(session.trusted), tree=tree)))
    problem = _preflighted(session, lambda: session.judge.describe(Describe(task=str(session.trusted))))
    refuse_baseline(checked)
    request = Calibrate(task=str(session.trusted), base=tree)
    try:
        noise, measured, findings = session.ask(lambda: session.judge.calibrate(request))
    except BaselineBroken as broken:
        raise Stopped("baseline", "baseline_timing_invalid", str(broken)) from None
    state.noise, state.floors, state.dtype = noise, problem.floors, _dtype(problem)
    state.best_ns = {one.name: median(records.side_ns(measured, one.name, "base")) for one in session.spec.workloads}
    _write_baseline(session, measured, findings)
    state.global_champion = Champion(
        iter=0,
        kernel=state.baseline_file,
        average_ms=records.average_ms(measured, session.full, "base") or 0.0,
        artifact_manifest="baseline/kernel.build.json",
        commit=commit,
    )
    state.best_file, state.baseline_ms = state.baseline_file, state.global_champion.average_ms
    state.best_metric_ms = state.baseline_ms
    standing = evidence.standing(session, commit, 0)
    write_json(session.folder.baseline / "ncu_top.json", standing.ncu_top)
    state.baseline_ncu_top = "baseline/ncu_top.json"
    state.baseline_ncu_rep = evidence.keep_report(session, standing, session.folder.baseline / "baseline.ncu-rep")
    state.profiling_policy["bundle"] = standing.profile.bundle
    state.roofline_history = [{"iter": 0, **standing.roofline}]
    state.baseline_verified, state.generation_allowed, state.run_status = True, True, "ready"
    session.store.save()
    full = state.baseline_ms
    session.say(
        f"baseline: {full:.4g} ms at your shape, right on {len(measured.checks)} shapes; noise {noise.floor:.2%}"
    )


def _dtype(problem: Problem) -> str:
    """The dtype that roofs are named after: that of the first floating-point output."""
    written = [one.dtype for one in problem.operands if one.role != "input" and "float" in one.dtype]
    return written[0] if written else "float32"


def _preflighted(session: Session, question: Callable[[], Any]) -> Any:
    """What the task's own functions do wrong is the user's, and a gate's."""
    try:
        return session.ask(question)
    except BaselineBroken:
        raise
    except UserError as error:
        raise Stopped("baseline", "baseline_preflight_failed", str(error)) from None


def _write_baseline(session: Session, measured: Measurement, findings: dict[str, Any]) -> None:
    baseline, name = session.folder.baseline, session.options.baseline.name
    write_text(baseline / name, session.source_of(session.hub.baseline))
    written = records.bench(session.subject(f"baseline/{name}"), measured, "base")
    written["calibration"] = {name: findings[name] for name in ("clean", "found", "planted_gain", "sandbox")}
    write_json(baseline / "bench.json", written)
    write_text(
        baseline / "bench.stderr.txt", "\n".join(measured.base_build.remarks if measured.base_build else ()) + "\n"
    )
    if measured.base_build is not None:
        write_json(baseline / "kernel.build.json", measured.base_build.model_dump(mode="json"))


def write_environment(options: Options, environment: dict[str, Any]) -> None:
    """``--env-out``: the same facts where the user wants them."""
    if options.env_out is not None:
        write_text(options.env_out, json.dumps(environment, indent=2, default=str) + os.linesep)
