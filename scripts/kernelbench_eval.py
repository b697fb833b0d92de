"""Evaluate ModelNew files by KernelBench's own rules, apart from our judge; eager and torch.compile in the same run.

usage: python scripts/kernelbench_eval.py PROBLEM=SOLUTION ... [--device cuda|cpu] [--precision fp32|fp16|bf16]
           [--trials 5] [--repeats 100] [--seconds 20] [--dim NAME=SIZE ...] [--no-compile] [-o FILE]

The rules: seed 42 before each model is made, so both draw the same weights; seeds of the correctness trials come from a
generator with seed 42; results are compared in shape and by allclose with the precision's tolerance; times are of
CUDA events around one call after the L2 cache was overwritten, three calls to warm up, the first trial dropped, and of
the host's clock on a CPU. ``fast_p`` is the share of all problems that are right and more than p times faster.

What is right is told with TF32 switched off: torch permits it to convolutions, and at 1e-4 a reference that used it
would refuse the kernels that compute in single precision. ``as_it_comes`` is what the benchmark, which leaves torch as
it is, would have said; times are taken with torch as it is.

Otherwise, where this differs, it is stricter or says more: integer inputs keep their dtype, several results are
compared one by one, dtypes must agree, and medians are printed beside means. The three sides are timed in turn, in
rounds, so that what drifts meets all of them; an interval (95 %, Student) is of the rounds' log ratios. Calls of many
milliseconds are repeated less often, within about ``--seconds`` a problem; ``--repeats 0`` times nothing and compiles
everything once. A file is executed in this process: for the truth about a kernel that nobody vouches for, there is the
judge.
"""

import argparse
import ast
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from fast_p import Result, interval, summary  # noqa: E402

from team.tasks.formats.kernelbench.problem import (  # noqa: E402
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
ROUNDS = 10


@dataclass(frozen=True)
class Rules:
    """How to evaluate; ``seconds`` bounds the timed calls of a problem."""

    device: str
    precision: Precision
    trials: int
    repeats: int
    dims: Mapping[str, int]
    compiled: bool
    seconds: float = 20.0


@dataclass(frozen=True)
class Side:
    """One thing that is timed; the benchmark times the candidate with autograd's bookkeeping, baselines without."""

    call: Callable[[], Any]
    graded: bool = False


def evaluate(
    problem_path: Path, solution: Path, rules: Rules, before_times: Callable[[Result], None] = lambda _: None
) -> Result:
    """One problem and its solution; ``before_times`` is called with what is known when all is compiled."""
    problem = read_problem(problem_path, rules.precision)
    sizes = {name: size for name, size in rules.dims.items() if name in problem.constants}
    parts = problem.namespace(sizes)
    torch.manual_seed(SEED)
    arguments = parts["get_init_inputs"]()
    reference = _made(parts["Model"], arguments, rules)
    try:
        ours = _made(_loaded(solution, sizes)["ModelNew"], arguments, rules)
        as_it_comes = _first_difference(parts["get_inputs"], reference, ours, problem, rules)
        with _without_tf32():
            reason = _first_difference(parts["get_inputs"], reference, ours, problem, rules)
    except Exception as error:  # noqa: BLE001  whatever a foreign file raises is its result
        return Result(problem_path.stem, False, f"{type(error).__name__}: {error}"[:300])
    if reason:
        return Result(problem_path.stem, False, reason, as_it_comes)
    torch.manual_seed(SEED)
    inputs = _moved(parts["get_inputs"](), problem, rules)
    sides = {"own": Side(lambda: ours(*inputs), graded=True), "eager": Side(lambda: reference(*inputs))}
    result = Result(problem_path.stem, True, "", as_it_comes)
    if rules.compiled:
        better = torch.compile(reference)
        sides["compile"] = Side(lambda: better(*inputs))
        result.uncompiled = _refusal(sides["compile"])
        if result.uncompiled:
            del sides["compile"]
    if rules.repeats:
        before_times(result)
        _timed(result, sides, rules)
    return result


def _timed(result: Result, sides: Mapping[str, Side], rules: Rules) -> None:
    """Times of every side into the result."""
    rounds = _rounds(sides, rules)
    every = {name: [one for times in found for one in times] for name, found in rounds.items()}
    result.repeats = len(every["own"])
    result.median_ms, result.mean_ms = statistics.median(every["own"]), statistics.fmean(every["own"])
    result.eager_ms = statistics.median(every["eager"])
    result.compile_ms = statistics.median(every["compile"]) if "compile" in every else None
    own = [statistics.median(times) for times in rounds.pop("own")]
    for name, found in rounds.items():
        result.speedup[name] = interval([statistics.median(times) for times in found], own)


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


@contextmanager
def _without_tf32() -> Iterator[None]:
    """Products and convolutions of single precision in single precision, and torch as it was afterwards."""
    kinds = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [kind.allow_tf32 for kind in kinds]
    try:
        for kind in kinds:
            kind.allow_tf32 = False
        yield
    finally:
        for kind, allowed in zip(kinds, before, strict=True):
            kind.allow_tf32 = allowed


def _finish(rules: Rules) -> None:
    if rules.device == "cuda":
        torch.cuda.synchronize()


def _refusal(side: Side) -> str:
    """Why torch.compile does not take the model, in one line; the call compiles it."""
    try:
        _in_mode(side, side.call)
    except Exception as error:  # noqa: BLE001  a compiler's own errors are of many kinds
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return ""


def _in_mode(side: Side, call: Callable[[], Any]) -> Any:
    with torch.set_grad_enabled(side.graded):
        return call()


def _rounds(sides: Mapping[str, Side], rules: Rules) -> dict[str, list[list[float]]]:
    """Milliseconds of each call but the first of a round, by side and round."""
    once = _by_events if rules.device == "cuda" else _by_the_host
    begun = time.perf_counter()
    for side in sides.values():
        for _ in range(WARM_UP):
            _in_mode(side, side.call)
    _finish(rules)
    spent = (time.perf_counter() - begun) / WARM_UP  # seconds of one call of each side
    many = max(1, min(rules.repeats // ROUNDS, int(rules.seconds / ROUNDS / max(spent, 1e-6))))
    found: dict[str, list[list[float]]] = {name: [] for name in sides}
    until = time.perf_counter() + rules.seconds
    for number in range(ROUNDS):
        if number >= 2 and time.perf_counter() > until:
            break
        for name, side in sides.items():
            times = [_in_mode(side, lambda side=side: once(side.call)) for _ in range(many + 1)]
            found[name].append(times[1:])
    return found


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


def _row(one: Result) -> str:
    if not one.correct:
        return f"{one.problem:34} wrong: {one.reason}"
    times = [one.median_ms, one.eager_ms, one.compile_ms]
    shown = [f"{value:10.4f}" if value is not None else f"{'-':>10}" for value in times]
    shown += [f"{name} {middle:.3f}x [{low:.3f}, {high:.3f}]" for name, (low, middle, high) in one.speedup.items()]
    shown += [f"torch.compile: {one.uncompiled}"] * bool(one.uncompiled)
    shown += [f"as torch comes: {one.as_it_comes}"] * bool(one.as_it_comes)
    return f"{one.problem:34} right {' '.join(shown)}"


def main() -> int:
    """0 when every solution is right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", nargs="+", metavar="PROBLEM=SOLUTION")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=list(DTYPES), default="fp32")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0, help="of timed calls a problem, about")
    parser.add_argument("--dim", action="append", default=[], help="another value of a top-level size, in both files")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    dims = {name: int(size) for name, _, size in (one.partition("=") for one in given.dim)}
    rules = Rules(given.device, given.precision, given.trials, given.repeats, dims, not given.no_compile, given.seconds)
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
