"""What the catalog's own proposals are worth: a greedy loop on the three examples, on one core (slow: minutes)."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import MATMUL, RMSNORM, SOFTMAX
from test_catalog_mind import attempt, briefing

from protocol.messages import PastExperiment, Proposal, Role, Verdict
from roles.minds.catalog import CatalogMind

FLAGS = ["-O3", "-march=native", "-std=c++17", "-fopenmp-simd", "-fPIC"]
ROWS = [[256, 1024], [64, 4096], [1024, 128], [193, 517]]
PRODUCTS = [[128, 128, 128], [256, 256, 256], [384, 64, 192], [97, 131, 113]]


def gains(workbench, texts: list[str], problem: str, shapes: list[list[int]], rounds: int) -> list[float]:
    request = {
        "libraries": [str(workbench.build(text, FLAGS)) for text in texts],
        "problem": problem,
        "shapes": shapes,
        "rounds": rounds,
    }
    script = Path(__file__).with_name("timing.py")
    done = subprocess.run([sys.executable, str(script)], input=json.dumps(request), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judged(proposal: Proposal, number: int, role: Role, measured: list[float], gain: float) -> PastExperiment:
    best = max(range(len(measured)), key=measured.__getitem__)
    return PastExperiment(
        id=f"e{number}",
        agent=role.value,
        role=role,
        plan=proposal.plan,
        parameters=proposal.variants[best].parameters,
        verdict=Verdict.KEEP if gain > 0.02 else Verdict.REVERT,
        reason="",
        gain=gain,
        base=f"{number:040d}",
        commit="c",
        screened=tuple(zip((each.parameters for each in proposal.variants), measured, strict=True)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "problem", "shapes", "goal"),
    [(MATMUL, "matmul", PRODUCTS, 10.0), (SOFTMAX, "softmax", ROWS, 5.0), (RMSNORM, "rmsnorm", ROWS, 4.0)],
    ids=["matmul", "softmax", "rmsnorm"],
)
def test_eight_experiments_reach_the_goal(source, problem, shapes, goal, workbench, record_property) -> None:
    text, history = source, []
    for number in range(8):
        role = list(Role)[number % 2]
        told = briefing(text, role=role, agent=role.value, number=number // 2, history=tuple(history), seed=number)
        proposal = attempt(CatalogMind(), told)
        if proposal is None:
            continue
        texts = [each.files["kernel.cpp"] for each in proposal.variants]
        screened = gains(workbench, [text, *texts], problem, shapes, 3)
        champion = texts[screened.index(max(screened))]
        correct = workbench.worst_error(champion, problem, shapes) <= 1.0
        gain = gains(workbench, [text, champion], problem, shapes, 9)[0] if correct else -9.0
        history.append(judged(proposal, number, role, screened, gain))
        text = champion if history[-1].verdict.kept else text
    speedup = math.exp(gains(workbench, [source, text], problem, shapes, 15)[0])
    record_property("speedup", speedup)
    print(f"{problem}: {speedup:.1f}x", [(each.plan.technique, each.verdict.value) for each in history])  # noqa: T201
    assert speedup >= goal
