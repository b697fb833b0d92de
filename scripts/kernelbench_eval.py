"""Evaluate ModelNew files by KernelBench's own rules, apart from our judge; eager and torch.compile in the same run.

usage: python scripts/kernelbench_eval.py PROBLEM=SOLUTION ... [--device cuda|cpu] [--precision fp32|fp16|bf16]
           [--trials 5] [--repeats 100] [--dim NAME=SIZE ...] [--no-compile] [-o FILE]

The rules: seed 42 before each model is made, so both draw the same weights; seeds of the correctness trials come from a
generator with seed 42; results are compared in shape and by allclose with the precision's tolerance; times are of
CUDA events around one call after the L2 cache was overwritten, three calls to warm up, the first trial dropped, and of
the host's clock on a CPU. ``fast_p`` is the share of all problems that are right and more than p times faster.

Where this differs, it is stricter or says more: integer inputs keep their dtype, several results are compared one by
one, dtypes must agree, and medians are printed beside means. A file is executed in this process: for the truth about a
kernel that nobody vouches for, there is the judge.
"""

import argparse
import ast
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import torch

from team.tasks.formats.kernelbench.problem import (
    DTYPES,
    TOLERANCES,
    Precision,
    Problem,
    read_problem,
    resized,
    results_of,
)

SEED = 42
WARM_UP = 3
THRASH_BYTES = 256 << 20
SPEEDUPS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)


@dataclass
class Result:
    """What one file did. Times are medians and means of one call (milliseconds)."""

    problem: str
    correct: bool
    reason: str
    median_ms: float | None = None
    mean_ms: float | None = None
    eager_ms: float | None = None
    compile_ms: float | None = None


@dataclass(frozen=True)
class Rules:
    """How to evaluate."""

    device: str
    precision: Precision
    trials: int
    repeats: int
    dims: Mapping[str, int]
    compiled: bool


def evaluate(problem_path: Path, solution: Path, rules: Rules) -> Result:
    """One problem and its solution."""
    problem = read_problem(problem_path, rules.precision)
    sizes = {name: size for name, size in rules.dims.items() if name in problem.constants}
    parts = problem.namespace(sizes)
    torch.manual_seed(SEED)
    arguments = parts["get_init_inputs"]()
    reference = _made(parts["Model"], arguments, rules)
    try:
        ours = _made(_loaded(solution, sizes)["ModelNew"], arguments, rules)
        reason = _first_difference(parts["get_inputs"], reference, ours, problem, rules)
    except Exception as error:  # noqa: BLE001  whatever a foreign file raises is its result
        return Result(problem_path.stem, False, f"{type(error).__name__}: {error}"[:300])
    if reason:
        return Result(problem_path.stem, False, reason)
    torch.manual_seed(SEED)
    inputs = _moved(parts["get_inputs"](), problem, rules)
    own = _times(lambda: ours(*inputs), rules)
    with torch.no_grad():
        eager = _times(lambda: reference(*inputs), rules)
        better = _compiled(reference, inputs, rules) if rules.compiled else None
    return Result(
        problem_path.stem,
        True,
        "",
        statistics.median(own),
        statistics.fmean(own),
        statistics.median(eager),
        statistics.median(better) if better else None,
    )


def _loaded(path: Path, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The solution's module, imported from a file since Triton reads sources again, with these sizes."""
    tree = resized(ast.parse(path.read_text()), sizes)
    text = ast.unparse(tree) if sizes else path.read_text()
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as handle:
        handle.write(text)
    spec = importlib.util.spec_from_file_location(f"solution_{Path(handle.name).stem}", handle.name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def _made(model: Any, arguments: list[Any], rules: Rules) -> torch.nn.Module:
    torch.manual_seed(SEED)
    with torch.no_grad():
        return model(*arguments).to(device=rules.device, dtype=DTYPES[rules.precision])


def _moved(inputs: list[Any], problem: Problem, rules: Rules) -> list[Any]:
    return [problem.narrowed(one).to(rules.device) if isinstance(one, torch.Tensor) else one for one in inputs]


def _first_difference(
    get_inputs: Callable[[], list[Any]], reference: Any, ours: Any, problem: Problem, rules: Rules
) -> str:
    """Why it is not right; empty when all trials pass."""
    torch.manual_seed(SEED)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,)).item()) for _ in range(rules.trials)]
    tolerance = TOLERANCES[rules.precision]
    with torch.no_grad():
        for number, seed in enumerate(seeds):
            torch.manual_seed(seed)
            inputs = _moved(get_inputs(), problem, rules)
            torch.manual_seed(seed)
            wanted = results_of(reference(*inputs))
            _finish(rules)
            torch.manual_seed(seed)
            got = results_of(ours(*inputs))
            _finish(rules)
            if [one.shape for one in got] != [one.shape for one in wanted]:
                return f"trial {number + 1}: other shapes"
            if [one.dtype for one in got] != [one.dtype for one in wanted]:
                return f"trial {number + 1}: other dtypes"
            for one, other in zip(got, wanted, strict=True):
                if not torch.allclose(one, other, atol=tolerance, rtol=tolerance):
                    return f"trial {number + 1}: largest error {float((one - other).abs().max()):.3g}"
    return ""


def _finish(rules: Rules) -> None:
    if rules.device == "cuda":
        torch.cuda.synchronize()


def _compiled(reference: Any, inputs: list[Any], rules: Rules) -> list[float]:
    """torch.compile on the same model; the call compiles in the warm-up."""
    compiled = torch.compile(reference)
    try:
        return _times(lambda: compiled(*inputs), rules)
    except RuntimeError as error:
        print(f"torch.compile: {str(error).splitlines()[0]}", file=sys.stderr)
        return []


def _times(call: Callable[[], Any], rules: Rules) -> list[float]:
    """Milliseconds of each call but the first."""
    for _ in range(WARM_UP):
        call()
    _finish(rules)
    once = _by_events if rules.device == "cuda" else _by_the_host
    return [once(call) for _ in range(rules.repeats + 1)][1:]


def _by_events(call: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.empty(THRASH_BYTES // 8, dtype=torch.int64, device="cuda").fill_(SEED)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def _by_the_host(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def summary(results: list[Result]) -> dict[str, Any]:
    """fast_p over eager and over torch.compile, and geometric means over the right ones."""
    found: dict[str, Any] = {"problems": len(results), "correct": sum(one.correct for one in results)}
    for name in ("eager_ms", "compile_ms"):
        speedups = [
            other / one.median_ms
            for one in results
            if one.correct and one.median_ms and (other := getattr(one, name)) is not None
        ]
        if speedups:
            against = name.removesuffix("_ms")
            found[f"fast_p over {against}"] = {
                str(p): sum(one > p for one in speedups) / len(results) for p in SPEEDUPS
            }
            found[f"geometric mean over {against}"] = exp(statistics.fmean(map(log, speedups)))
    return found


def _row(one: Result) -> str:
    if not one.correct:
        return f"{one.problem:34} wrong: {one.reason}"
    times = [one.median_ms, one.eager_ms, one.compile_ms]
    shown = [f"{value:10.4f}" if value is not None else f"{'-':>10}" for value in times]
    return f"{one.problem:34} right {' '.join(shown)}"


def main() -> int:
    """0 when every solution is right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", nargs="+", metavar="PROBLEM=SOLUTION")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=list(DTYPES), default="fp32")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--dim", action="append", default=[], help="another value of a top-level size, in both files")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    dims = {name: int(size) for name, _, size in (one.partition("=") for one in given.dim)}
    rules = Rules(given.device, given.precision, given.trials, given.repeats, dims, not given.no_compile)
    print(f"{'problem':40} {'median ms':>10} {'eager':>10} {'compile':>10}")
    results: list[Result] = []
    for pair in given.pairs:
        problem, _, solution = pair.partition("=")
        results.append(evaluate(Path(problem), Path(solution), rules))
        print(_row(results[-1]), flush=True)
    found = summary(results)
    print(json.dumps(found, indent=2))
    if given.output:
        body = {"rules": asdict(rules), "summary": found, "results": [asdict(one) for one in results]}
        given.output.write_text(json.dumps(body, indent=1) + "\n")
    return 0 if all(one.correct for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
