"""First kernels of imported definitions, and better ones, are right under Triton's interpreter; cheats are not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trace_data import trace_root

pytest.importorskip("triton")

from team.devices.cpu import cpu_devices
from team.judge.check import Checker, Record
from team.judge.inputs import InputSource
from team.judge.kernels import KernelShop
from team.judge.triton.bench import InterpretingBench
from team.tasks.formats.flashinfer.calling import as_kernel
from team.tasks.formats.flashinfer.dataset import read_definition
from team.tasks.formats.flashinfer.importing import first_kernel, import_problem
from team.tasks.formats.flashinfer.packing import pack
from team.tasks.formats.flashinfer.schema import Solution

SOLUTIONS = Path(__file__).parent / "solutions"
DSA = "dsa_paged/dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
INDEXER = "dsa_paged/dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path, Path], Record]]:
    place = tmp_path_factory.mktemp("interpreted")
    device = cpu_devices(1)[0]
    kernels = KernelShop(device, place)
    bench = InterpretingBench(device, kernels.host, place / "empty")

    def check(folder: Path, tree: Path) -> Record:
        task = kernels.task(folder)
        built = kernels.kernel(task, tree, "candidate")
        checker = Checker(bench, task, InputSource(task), task.spec.policy)
        return checker.check("candidate", built.artifact, None, profiles=False)

    yield check
    bench.close()


def task_of(name: str, folder: Path) -> Path:
    import_problem(trace_root() / "definitions" / f"{name}.json", folder)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "rmsnorm/rmsnorm_h128",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                *("gemm/gemm_n128_k2048", "rmsnorm/fused_add_rmsnorm_h2048", DSA, INDEXER),
                *("gqa_paged/gqa_paged_decode_h5_kv1_d128_ps1", "gqa_paged/gqa_paged_decode_h6_kv1_d128_ps64"),
                "gqa_paged/gqa_paged_prefill_causal_h5_kv1_d128_ps64",
                "gqa_paged/gqa_paged_prefill_causal_h32_kv4_d128_ps1",
                "gqa_ragged/gqa_ragged_prefill_causal_h5_kv1_d128",
                "rope/rope_with_cos_sin_cache_neox_style_d128_rd64",
            )
        ),
    ],
)
def test_a_first_kernel_is_right(name: str, judged: Callable[[Path, Path], Record], tmp_path: Path) -> None:
    folder = task_of(name, tmp_path / "task")
    record = judged(folder, folder)
    assert record.checks["small"].worst <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file"), [(DSA, "dsa_sparse_attention.py"), (INDEXER, "dsa_topk_indexer.py")])
def test_a_better_kernel_is_right(name: str, file: str, judged: Callable[[Path, Path], Record], tmp_path: Path) -> None:
    folder = task_of(name, tmp_path / "task")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "kernel.py").write_text((SOLUTIONS / file).read_text())
    record = judged(folder, tree)
    assert record.checks["small"].worst <= 1.0


STYLES = {
    "in place": ("hidden_states, weight, output", "", ""),
    "returning": ("hidden_states, weight", "    output = torch.empty_like(hidden_states)\n", "    return output\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_a_solution_is_judged_in_either_style(
    style: str, judged: Callable[[Path, Path], Record], tmp_path: Path
) -> None:
    """What is exported passes again, whichever way it was called at first."""
    name = "rmsnorm/rmsnorm_h128"
    definition = read_definition(trace_root() / "definitions" / f"{name}.json")
    kernel, call = str(first_kernel(definition)).split("def run_kernel(hidden_states, weight, output, batch_size, ")
    taken, before, after = STYLES[style]
    body = call.partition(":\n")[2].replace("batch_size", "hidden_states.shape[0]").replace("hidden_size", "128")
    solution = {
        "name": "rms",
        "definition": definition.name,
        "author": "somebody",
        "spec": {
            "language": "triton",
            "target_hardware": ["cuda"],
            "entry_point": "main.py::run",
            "destination_passing_style": style == "in place",
        },
        "sources": [
            {"path": "main.py", "content": f"import torch\n{kernel}def run({taken}):\n{before}{body.rstrip()}\n{after}"}
        ],
    }
    folder = tmp_path / "task"
    first = as_kernel(definition, Solution.model_validate(solution))
    import_problem(trace_root() / "definitions" / f"{name}.json", folder, first=first)
    assert judged(folder, folder).checks["small"].worst <= 1.0
    assert pack(folder, folder).spec.destination_passing_style is (style == "in place")
    again = tmp_path / "again"
    again.mkdir()
    (again / "kernel.py").write_text(as_kernel(definition, pack(folder, folder)))
    assert judged(folder, again).checks["small"].worst <= 1.0
