"""FlashInfer-Trace definitions become tasks; foreign records that are wrong give a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from trace_data import shrunk, trace_data, trace_root

from team.errors import UserError
from team.tasks.formats.flashinfer.dataset import Dataset, read_dataset, read_definition
from team.tasks.formats.flashinfer.importing import first_kernel, import_problem, kind_of, sorted_out
from team.tasks.formats.flashinfer.schema import Definition
from team.tasks.task import Task, load_task

AXPY = {
    "name": "axpy_n",
    "op_type": "misc",
    "axes": {"M": {"type": "var"}, "W": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["M", "W"], "dtype": "float32"},
        "a": {"shape": None, "dtype": "float32"},
        "places": {"shape": ["M"], "dtype": "int32"},
    },
    "outputs": {"y": {"shape": ["M", "W"], "dtype": "float32"}},
    "reference": "def run(x, a, places):\n    return a * x[places.long().clamp(0, x.shape[0] - 1)]\n",
}
LINE = {
    "definition": "axpy_n",
    "solution": None,
    "workload": {"uuid": "w1", "axes": {"M": 4}, "inputs": {"a": {"type": "scalar", "value": 2.0}}},
    "evaluation": None,
}


def dataset(folder: Path, definition: dict[str, Any] | None = None, lines: list[dict[str, Any]] | None = None) -> Path:
    """A data set of one definition; the definition's file."""
    for name in ("definitions/misc", "workloads/misc"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    path = folder / "definitions" / "misc" / "axpy_n.json"
    path.write_text(json.dumps(definition or AXPY))
    text = "\n".join(json.dumps(line) for line in ([LINE] if lines is None else lines))
    (folder / "workloads" / "misc" / "axpy_n.jsonl").write_text(text)
    return path


def line(uuid: str, axes: dict[str, int], **inputs: Any) -> dict[str, Any]:
    given = {"a": {"type": "scalar", "value": 2.0}, **inputs}
    return {"definition": "axpy_n", "workload": {"uuid": uuid, "axes": axes, "inputs": given}}


def imported(definition: Definition, folder: Path) -> Task:
    """The task of one definition, on its small shapes."""
    place = folder / "definitions"
    place.mkdir(parents=True)
    (place / "one.json").write_text(definition.model_dump_json())
    import_problem(place / "one.json", folder / "task")
    return load_task(folder / "task", interpreted=True)


def assert_runs(task: Task) -> None:
    """Inputs repeat by seed; the reference is finite, leaves them alone, and is right by its own measure."""
    workload = task.workloads[0]
    inputs, again = (task.make_inputs(workload, 7) for _ in range(2))
    other = task.make_inputs(workload, 8)
    want, single = task.reference(workload, inputs, double=True), task.reference(workload, inputs)
    assert all(torch.equal(_bits(inputs[name]), _bits(again[name])) for name in inputs)
    assert any(not torch.equal(_bits(inputs[name]), _bits(other[name])) for name in inputs)
    got = {one.name: single[one.name].to(one.dtype) for one in task.outputs}
    seen = task.compare_launch(workload, inputs, got, want)
    assert seen.passes, seen.detail
    assert all(bool(value.isfinite().all()) for value in want.values())
    floor = task.floor(workload)
    assert floor["bytes_min"] > 0


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


@pytest.fixture(scope="module")
def public() -> Dataset:
    torch.set_num_threads(1)
    return trace_data()


def test_every_public_definition_loads(public: Dataset) -> None:
    assert len(public.definitions) == 156
    assert sum(len(found) for found in public.workloads.values()) == 663
    assert public.faults == {}


def test_every_recorded_workload_is_runnable_or_says_why(public: Dataset) -> None:
    fitting = 0
    for name, workloads in public.workloads.items():
        found, reasons = sorted_out(public.definitions[name], workloads, public.root)
        fitting += len(found)
        assert len(found) + len(reasons) == len(workloads)
        assert all(reason.startswith("Workload") and reason.endswith(".") for reason in reasons.values())
    assert fitting == 661  # two have a cache without pages


SAMPLE = (
    *("gemm_n128_k2048", "rmsnorm_h128", "fused_add_rmsnorm_h2048", "gqa_paged_prefill_causal_h5_kv1_d128_ps64"),
    *("dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"),
    *(
        "gdn_mtp_qk4_v8_d128_k_last",
        "mamba_ssu_decode_h64_d64_s128_ng4",
        "rope_with_cos_sin_cache_neox_style_d128_rd64",
    ),
    *("moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048", "top_k_top_p_sampling_from_probs_v128256"),
    *("trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192", "gqa_ragged_prefill_causal_h5_kv1_d128"),
)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_definition_becomes_a_task(name: str, public: Dataset, tmp_path: Path) -> None:
    assert_runs(imported(shrunk(public.definitions[name]), tmp_path))


@pytest.mark.slow
def test_all_definitions_become_tasks(public: Dataset, tmp_path: Path) -> None:
    for name, definition in public.definitions.items():
        task = imported(shrunk(definition), tmp_path / name)
        assert_runs(task)


def test_kinds_leave_constants_out(public: Dataset) -> None:
    kinds = {kind_of(definition) for definition in public.definitions.values()}
    assert {"gemm", "rmsnorm", "dsa_topk_indexer_fp8", "top_k_sampling_from_probs"} <= kinds
    assert len(kinds) < 30


def test_most_public_definitions_have_a_first_kernel(public: Dataset) -> None:
    assert sum(first_kernel(definition) is not None for definition in public.definitions.values()) == 97


def test_a_recorded_definition_keeps_its_workloads(tmp_path: Path) -> None:
    found = import_problem(trace_root() / "definitions" / "gemm" / "gemm_n128_k2048.json", tmp_path / "task", most=3)
    task = load_task(tmp_path / "task")
    sizes = [workload.dims["M"] for workload in task.workloads]
    assert len(found.workloads) == len(sizes) == 3
    assert sizes == sorted(sizes)
    assert found.remarks == ()
    assert load_task(tmp_path / "task", interpreted=True).workloads[0].name == "small"


def test_workloads_that_cannot_run_say_why(tmp_path: Path) -> None:
    lines = [
        line("good", {"M": 4}),
        line("twin", {"M": 4}),
        line("axisless", {}),
        line("huge", {"M": 1 << 40}),
        line("nothing", {"M": 0}),
        {"definition": "axpy_n", "workload": {"uuid": "numberless", "axes": {"M": 4}}},
        line("outside", {"M": 4}, places={"type": "safetensors", "path": "../secret", "tensor_key": "k"}),
    ]
    found = import_problem(dataset(tmp_path, lines=lines), tmp_path / "task")
    assert found.workloads == ("good",)
    assert load_task(tmp_path / "task").workloads[0].weight == 2.0
    assert {name: reason.split(": ", 1)[-1][:24] for name, reason in found.reasons.items()} == {
        "axisless": "it gives no value for th",
        "huge": "one set of its buffers h",
        "nothing": "its axis 'M' is 0, so th",
        "numberless": "it gives no value for th",
        "outside": "The recorded tensor '../",
    }


def test_recorded_tensors_are_used(tmp_path: Path) -> None:
    blob = tmp_path / "blob" / "p.safetensors"
    blob.parent.mkdir()
    entry = json.dumps({"k": {"dtype": "I32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    blob.write_bytes(len(entry).to_bytes(8, "little") + entry + torch.tensor([3, 2, 1, 0]).int().numpy().tobytes())
    spec = {"type": "safetensors", "path": "blob/p.safetensors", "tensor_key": "k"}
    import_problem(dataset(tmp_path, lines=[line("one", {"M": 4}, places=spec)]), tmp_path / "task")
    blob.unlink()
    task = load_task(tmp_path / "task")
    assert task.make_inputs(task.workloads[0], 1)["places"].tolist() == [3, 2, 1, 0]
    copied = tmp_path / "task" / "p.safetensors"
    copied.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(UserError, match="Git LFS pointer"):
        task.make_inputs(task.workloads[0], 1)
    copied.write_bytes(len(entry).to_bytes(8, "little") + entry + b"short")
    with pytest.raises(UserError, match="not as long as its shape"):
        task.make_inputs(task.workloads[0], 1)


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        ({"reference": "def other():\n    pass\n"}, "no function 'run'"),
        ({"reference": "def run(:\n"}, "is not Python"),
        ({"outputs": {"x": {"shape": ["M"], "dtype": "float32"}}}, "both an input and an output"),
        ({"outputs": {"y": {"shape": ["Q"], "dtype": "float32"}}}, "which is not declared"),
        ({"outputs": {"y": {"shape": ["M"], "dtype": "float64"}}}, "outputs.y.dtype"),
        ({"constraints": ["M =="]}, "is not Python"),
        ({"axes": {"M": {"type": "const"}, "W": {"type": "var"}}}, "a const axis has a value"),
    ],
)
def test_a_wrong_definition_is_a_sentence(change: dict[str, Any], clause: str, tmp_path: Path) -> None:
    path = dataset(tmp_path, {**AXPY, **change})
    with pytest.raises(UserError, match=clause):
        read_definition(path)
    assert [clause in fault for fault in read_dataset(tmp_path).faults.values()] == [True]


def test_an_edited_reference_is_noticed(tmp_path: Path) -> None:
    import_problem(dataset(tmp_path), tmp_path / "task")
    load_task(tmp_path / "task")
    reference = tmp_path / "task" / "reference.py"
    reference.write_text(reference.read_text().replace("a * x", "a + x"))
    with pytest.raises(UserError, match="does not hold the reference of axpy_n any more"):
        load_task(tmp_path / "task")


def test_a_definition_of_flashinfers_own_trace_layer(tmp_path: Path) -> None:
    theirs = {**AXPY, "reference": AXPY["reference"].replace("def run", "def _axpy_reference"), "check": {}, "init": 1}
    path = dataset(tmp_path, theirs)
    assert read_definition(path) == Definition.model_validate(AXPY)
    assert_runs(load_task(import_problem(path, tmp_path / "task", first="def run_kernel(x, y):\n    pass\n").folder))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = dataset(tmp_path)
    import_problem(path, tmp_path / "task")
    with pytest.raises(UserError, match="not empty"):
        import_problem(path, tmp_path / "task")


def test_axes_that_break_a_constraint(tmp_path: Path) -> None:
    path = dataset(tmp_path, {**AXPY, "constraints": ["M % 3 == 0", "places.shape[0] == M"]})
    with pytest.raises(UserError, match="break the constraint 'M % 3 == 0'"):
        import_problem(path, tmp_path / "task")
