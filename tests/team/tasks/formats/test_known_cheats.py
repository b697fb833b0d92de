"""What is known to pass elsewhere, and the test that it does not pass here.

``HELD`` names them: the six cheats that flashinfer-bench passes, the problems of KernelBench on which a trivial output
passes, and the holes of its contract. One test here fails when an entry has no test, or names one that is not there.
"""

import ast
from pathlib import Path
from typing import Any

import pytest
from problems_on_disk import plain, write_problem

from team.tasks.formats.kernelbench.importing import import_problem
from team.tasks.formats.kernelbench.problem import Precision, read_problem
from team.tasks.vetting.vetting import vet

ROOT = Path(__file__).parents[4]
OURS, CHEATS, GPU, VETTING, IMPORT, EXPORT, EVALUATORS = (
    f"tests/team/tasks/{name}.py"
    for name in (
        "formats/test_known_cheats",
        "formats/test_flashinfer_cheats",
        "formats/test_flashinfer_gpu",
        "test_vetting",
        "formats/test_kernelbench_import",
        "formats/test_kernelbench_export",
        "formats/test_flashinfer_evaluators",
    )
)
SCREEN, OUTPUTS, PLAN = (
    f"{CHEATS}::{name}"
    for name in (
        "test_the_screen_names_what_no_kernel_needs",
        "test_without_the_screen_outputs_and_inputs_tell",
        "test_on_a_gpu_only_a_plan_leaves_the_process",
    )
)
TRIVIAL = f"{OURS}::test_a_problem_on_which_a_trivial_output_passes_is_found"
NATURES = f"{VETTING}::test_a_wrong_answer_that_would_pass_is_found"
HELD: dict[str, tuple[str, ...]] = {
    # flashinfer-bench, in the order of the reference's section 7
    "rebinds the comparison": (f"{SCREEN}[rebinds the comparison]", f"{OUTPUTS}[rebinds the comparison]"),
    "finds the answer in frames": (f"{SCREEN}[looks for the answer in frames]", f"{OUTPUTS}[looks for the answer"),
    "remembers by address": (f"{OUTPUTS}[remembers by address]", f"{PLAN}[remembers by address]"),
    "changes its inputs": (f"{OUTPUTS}[zeroes its inputs]",),
    "rebinds the clock": (f"{SCREEN}[rebinds the clock]", f"{PLAN}[rebinds the clock]"),
    "works only as long as it is checked": (f"{OUTPUTS}[works at first only]", f"{PLAN}[works at first only]"),
    # KernelBench: problems on which nothing, a constant, a copy or another answer passes
    "zero mean": (f"{TRIVIAL}[the mean of what was normalised]", f"{NATURES}[the mean of what was normalised]"),
    "independent of the input": (
        f"{TRIVIAL}[less its own mean over one]",
        f"{NATURES}[a mean is taken from one element]",
        f"{NATURES}[an output that its main input does not reach]",
    ),
    "clamped to nothing": (f"{TRIVIAL}[clamped to nothing]",),
    "constant": (
        f"{TRIVIAL}[softmax over one]",
        f"{TRIVIAL}[the sum of a softmax]",
        f"{TRIVIAL}[a mean of very many]",
        f"{NATURES}[softmax over one]",
    ),
    "smaller than the tolerance": (f"{TRIVIAL}[softmax over very many]", f"{NATURES}[softmax over very many]"),
    "identity": (f"{TRIVIAL}[an activation of positive numbers]", f"{TRIVIAL}[clipped within the range]"),
    "overflow": (f"{TRIVIAL}[overflow]", f"{NATURES}[overflow]"),
    # KernelBench: holes of its contract
    "weights by the order of drawing": (
        f"{IMPORT}::test_weights_are_arguments_and_the_reference_is_the_problems_own_model",
        f"{EXPORT}::test_the_exported_model_has_the_same_weights_and_results",
    ),
    "weights that are alike everywhere": (f"{IMPORT}::test_a_weight_that_is_alike_everywhere_is_given_values",),
    "integer inputs become floats": (f"{IMPORT}::test_precisions_are_the_benchmarks",),
}
PROBLEMS: dict[str, tuple[dict[str, Any], Precision, str]] = {
    "the mean of what was normalised": (
        {"forward": "nn.functional.layer_norm(x, (x.shape[1],)).mean(dim=1)"},
        "fp32",
        "zeros",
    ),
    "less its own mean over one": (
        {"forward": "(lambda y: nn.functional.gelu(y - y.mean(dim=1, keepdim=True)))(x.amax(dim=1, keepdim=True))"},
        "fp32",
        "zeros",
    ),
    "clamped to nothing": (
        {"forward": "torch.clamp(torch.minimum(x, torch.zeros_like(x)), 0.0, 1.0)"},
        "fp32",
        "zeros",
    ),
    "softmax over one": ({"forward": "torch.softmax(x.sum(dim=1, keepdim=True), dim=1)"}, "fp32", "constant"),
    "the sum of a softmax": ({"forward": "torch.softmax(x, dim=1).sum(dim=1)"}, "fp32", "constant"),
    "a mean of very many": (
        {"forward": "x.mean(dim=1)", "draw": "torch.rand", "rows": 4, "cols": 20000},
        "fp16",
        "constant",
    ),
    "softmax over very many": (
        {"forward": "torch.softmax(x, dim=1)", "draw": "torch.rand", "rows": 2, "cols": 40000},
        "fp32",
        "zeros",
    ),
    "an activation of positive numbers": ({"forward": "torch.relu(x)", "draw": "torch.rand"}, "fp32", "copy"),
    "clipped within the range": ({"forward": "torch.clamp(x, -1.0, 1.0)", "draw": "torch.rand"}, "fp32", "copy"),
    "overflow": ({"forward": "torch.exp(x * 40.0)"}, "fp16", "not finite"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_on_which_a_trivial_output_passes_is_found(name: str, tmp_path: Path) -> None:
    options, precision, kind = PROBLEMS[name]
    problem = read_problem(write_problem(tmp_path, plain(**options)), precision)
    found = vet(import_problem(problem, tmp_path / "task", "triton").folder)
    assert kind in [finding.kind for finding in found.findings]


def test_a_problem_of_the_same_kind_that_is_sound_has_no_such_finding(tmp_path: Path) -> None:
    problem = read_problem(write_problem(tmp_path, plain("torch.softmax(x, dim=1) * x.shape[1]")))
    found = vet(import_problem(problem, tmp_path / "task", "triton").folder)
    assert {finding.kind for finding in found.findings} <= {"one shape", "whole tiles", "too small"}


@pytest.mark.parametrize("what", HELD)
def test_what_is_known_has_a_test(what: str) -> None:
    assert HELD[what]
    for name in HELD[what]:
        file, _, rest = name.partition("::")
        function, _, case = rest.partition("[")
        text = (ROOT / file).read_text()
        tests = {one.name: one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
        assert function in tests, name
        skipped = [ast.unparse(mark) for mark in tests[function].decorator_list]
        assert not any("skip" in mark or "xfail" in mark for mark in skipped), name
        assert not case or f'"{case.rstrip("]")}' in text, name
