"""Solutions in C++ and CUDA, bound by TVM-FFI: as tasks, under the judge, and as solutions again."""

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from bound_solutions import GATHER, RETURNING, on_disk, rmsnorm, told, with_tvm_ffi
from test_flashinfer_import import AXPY, dataset

from protocol.messages import Measurement, Outcome
from team.cli import app
from team.devices import has_gpu
from team.devices.cpu import cpu_devices
from team.errors import UserError
from team.evidence.compiled import compiler_report
from team.judge import tvm_ffi
from team.judge.failures import Forbidden
from team.judge.judge import Judge
from team.judge.request import Check, Compare
from team.judge.screening import screening_of
from team.tasks.formats.entry import import_foreign
from team.tasks.formats.export import export
from team.tasks.formats.flashinfer.bound import bound_files
from team.tasks.formats.flashinfer.packing import pack, pack_folder, read_solution, unpack
from team.tasks.formats.flashinfer.schema import Definition, Solution
from team.tasks.spec import read_spec
from team.tasks.task import load_task

DEFINITION = Definition.model_validate(AXPY)


def imported(folder: Path, text: str = GATHER, **spec: object) -> Path:
    """The task of a solution."""
    return import_foreign(on_disk(folder / "data", told(text, **spec)), folder / "task", "triton", "fp32", {})[0]


def test_a_solution_becomes_a_task_and_the_same_solution_again(tmp_path: Path) -> None:
    task = load_task(imported(tmp_path))
    assert [one.name for one in task.signature.parameters] == ["x", "places", "y", "a", "M"]
    assert (task.spec.device, task.spec.contract) == ("cpu", "solve")
    assert task.spec.editable_files == ("main.cpp", "lib/scaled.h")
    packed, was = pack(task.folder, task.folder), Solution.model_validate(told())
    assert packed.spec == was.spec
    assert {one.path: one.content for one in packed.sources} == {one.path: one.content for one in was.sources}
    (task.folder / "lib" / "scaled.h").write_text("#pragma once\n")
    assert pack(task.folder, task.folder).name != packed.name


def test_it_goes_out_as_a_file_a_folder_and_the_contests_layout(tmp_path: Path) -> None:
    task = imported(tmp_path, binding="tvm-ffi", destination_passing_style=False)
    solution = read_solution(export(task, tmp_path / "out.json"))
    assert pack_folder(unpack(solution, tmp_path / "unpacked")) == solution
    config = tomllib.loads((export(task, tmp_path / "contest") / "axpy_n" / "config.toml").read_text())
    assert config["build"] == {
        "language": "cpp",
        "entry_point": "main.cpp::run",
        "destination_passing_style": False,
        "binding": "tvm-ffi",
    }
    again, _ = import_foreign(
        on_disk(tmp_path / "data", solution.model_dump(mode="json")), tmp_path / "again", "triton", "fp32", {}
    )
    assert (again / "main.cpp").read_text() == GATHER


def test_a_cuda_solution_takes_the_stream_it_is_judged_on(tmp_path: Path) -> None:
    path = rmsnorm(tmp_path / "data", "rmsnorm_h128", [{"batch_size": 64}])
    task = load_task(import_foreign(path, tmp_path / "task", "triton", "fp32", {})[0])
    assert task.signature.parameters[-1].is_stream
    assert [one.parameter.dtype for one in task.buffers] == ["bfloat16"] * 3
    assert "Call call(stream)" in (task.folder / task.spec.source).read_text()
    solution = read_solution(export(task.folder, tmp_path / "out.json"))
    assert (solution.spec.language, solution.entry_file) == ("cuda", "rmsnorm.cu")


def test_what_the_judge_cannot_call_is_refused_in_a_sentence() -> None:
    def refused(change: dict[str, object], definition: dict[str, object] | None = None) -> str:
        solution = Solution.model_validate({**told(), **change})
        with pytest.raises(UserError) as caught:
            bound_files(Definition.model_validate(definition or AXPY), solution)
        return caught.value.what

    plain = told()
    assert "bound to torch" in refused({"spec": {**plain["spec"], "binding": "torch"}})
    silent = {"sources": [{"path": "main.cpp", "content": "void run() {}\n"}]}
    assert "exports nothing by TVM-FFI" in refused(silent)
    for path in ("notes.md", 'a"b.h'):
        assert "which is none in C++" in refused({"sources": [*plain["sources"], {"path": path, "content": "x"}]})
    taken = {"path": "kernelteam_solve.cpp", "content": "x"}
    assert "has a source named kernelteam_solve.cpp" in refused({"sources": [*plain["sources"], taken]})
    for name in ("float", "stream"):
        named = json.loads(json.dumps(AXPY).replace('"places"', f'"{name}"'))
        assert f"can be called '{name}'" in refused({}, named)


def test_without_the_package_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvm_ffi, "_MODULE", "tvm_ffi_that_is_not_there")
    tvm_ffi.package.cache_clear()
    with pytest.raises(UserError, match=r"apache-tvm-ffi is not installed\. Install it: pip install"):
        tvm_ffi.header_flags()
    monkeypatch.undo()
    tvm_ffi.package.cache_clear()


@pytest.mark.parametrize("name", ["TVMFFIEnvSetStream", "ffi::Function::GetGlobal", "LoadFromFile", "dlopen"])
def test_the_screen_knows_what_such_a_kernel_may_say(name: str, tmp_path: Path) -> None:
    task = imported(tmp_path)
    files = {path: (task / path).read_text() for path in ("main.cpp", "lib/scaled.h")}
    screening = screening_of(read_spec(task), files)
    assert screening is not None
    screening.text(files)
    with pytest.raises(Forbidden, match=name.rsplit("::", maxsplit=1)[-1]):
        screening.text({**files, "main.cpp": f"{GATHER}void more() {{ {name}(); }}\n"})
    screening.expanded('# 9 "main.cpp"\n__attribute__((visibility("default"))) int entry();\n')
    other = screening_of(
        read_spec(task).model_copy(update={"build": read_spec(task).build.model_copy(update={"binding": None})}), {}
    )
    assert other is not None
    with pytest.raises(Forbidden, match="includes <tvm/ffi"):
        other.text(files)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    found = Judge(cpu_devices(1)[0], tmp_path_factory.mktemp("judge"))
    yield found
    found.close()


def checked(judge: Judge, task: Path, tree: Path, *changes: tuple[str, str]) -> Measurement:
    """What the judge says of the task's kernel after some changes."""
    shutil.copytree(task, tree)
    text = (tree / "main.cpp").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tree / "main.cpp").write_text(text)
    return judge.check(Check(task=str(task), tree=str(tree)))


@with_tvm_ffi
def test_a_right_solution_passes(judge: Judge, tmp_path: Path) -> None:
    task = imported(tmp_path)
    toml = task / "task.toml"
    toml.write_text(toml.read_text().replace("[build]\n", '[build]\nflags = ["-O0"]\n'))  # the headers take long
    found = checked(judge, task, tmp_path / "tree")
    assert found.outcome is Outcome.MEASURED, found.detail


LOOP, STORE = "    for (int64_t row", "to[row * width + column] = "
WRONG = {
    "wrong": ([("static_cast<float>(a))", "static_cast<float>(a) + 1)")], Outcome.INCORRECT),
    "beyond its output": ([(LOOP, "    to[rows * width] = 0.0f;\n" + LOOP)], Outcome.INCORRECT),
    "into its input": ([(LOOP, "    const_cast<float*>(from)[0] = 0;\n" + LOOP)], Outcome.TAMPERED),
    "tired": ([(STORE, f"static int calls = 0;\n            if (++calls > 40) return;\n            {STORE}")],
              Outcome.INCORRECT),
    "raises": ([("y.size(1) == x.size(1)", "y.size(1) != x.size(1)")], Outcome.CRASHED),
    "another entry": ([("_FUNC(run,", "_FUNC(ran,")], Outcome.BUILD_FAILED),
    "another type": ([("double a", "ffi::TensorView a"), ("static_cast<float>(a)", "1.0f")], Outcome.CRASHED),
    "reaches out": ([("void gather", "#include <dlfcn.h>\nvoid gather")], Outcome.TAMPERED),
}  # fmt: skip


@pytest.mark.slow
@with_tvm_ffi
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_is_treated_as_in_other_languages(name: str, judge: Judge, tmp_path: Path) -> None:
    changes, outcome = WRONG[name]
    found = checked(judge, imported(tmp_path), tmp_path / "tree", *changes)
    assert found.outcome is outcome, found.detail


@pytest.mark.slow
@with_tvm_ffi
def test_a_solution_may_return_its_outputs(judge: Judge, tmp_path: Path) -> None:
    task = imported(tmp_path, RETURNING, destination_passing_style=False)
    found = checked(judge, task, tmp_path / "tree")
    assert found.outcome is Outcome.MEASURED, found.detail
    last = "    gather(x, a, places, y);\n    return y;"
    scratch = checked(
        judge, task, tmp_path / "scratch", (last, "    gather(x, a, places, scratch);\n    return scratch;")
    )
    assert scratch.outcome is Outcome.MEASURED, scratch.detail
    wrong = checked(judge, task, tmp_path / "wrong", (last, last.replace("return y", "return scratch")))
    assert wrong.outcome is Outcome.INCORRECT, wrong.detail
    itself = checked(judge, task, tmp_path / "itself", (last, last.replace("return y", "return places")))
    assert itself.outcome is Outcome.CRASHED, itself.detail


KINDS = {
    "name": "axpy_n",
    "op_type": "misc",
    "axes": {"M": {"type": "var"}, "W": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["M", "W"], "dtype": "float32"},
        "n": {"shape": None, "dtype": "int64"},
        "by": {"shape": ["M"], "dtype": "bfloat16"},
        "flag": {"shape": None, "dtype": "bool"},
        "whole": {"shape": [], "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "W"], "dtype": "float32"}, "z": {"shape": ["M", "W"], "dtype": "float32"}},
    "reference": "def run(x, n, by, flag, whole):\n    y = n * x * by.float()[:, None] + whole\n"
    "    return y, (-y if flag else y)\n",
}
PAIR = "Tuple<ffi::Tensor, ffi::Tensor>"
SEVERAL = """\
#include <cstdint>
#include <cstring>

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

namespace ffi = tvm::ffi;

ffi::RESULT both(ffi::TensorView x, int64_t n, ffi::TensorView by, bool flag, ffi::TensorView whole) {
    auto y = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
    auto z = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
    const int64_t width = x.size(1);
    for (int64_t at = 0; at < x.numel(); at++) {
        const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(by.data_ptr())[at / width]) << 16;
        float factor;
        std::memcpy(&factor, &bits, sizeof factor);
        const float value = static_cast<float>(n) * static_cast<const float*>(x.data_ptr())[at] * factor;
        static_cast<float*>(y.data_ptr())[at] = value + *static_cast<const float*>(whole.data_ptr());
        static_cast<float*>(z.data_ptr())[at] = (flag ? -1.0f : 1.0f) * static_cast<float*>(y.data_ptr())[at];
    }
    return GIVEN;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, both);
"""


@pytest.mark.slow
@with_tvm_ffi
@pytest.mark.parametrize(("returned", "given"), [("Array<ffi::Tensor>", "{y, z}"), (PAIR, f"ffi::{PAIR}(y, z)")])
def test_numbers_of_all_kinds_go_in_and_several_outputs_come_back(
    returned: str, given: str, judge: Judge, tmp_path: Path
) -> None:
    text = SEVERAL.replace("RESULT", returned).replace("GIVEN", given)
    path = on_disk(tmp_path / "data", told(text, destination_passing_style=False))
    numbers = {"n": {"type": "scalar", "value": 3}, "flag": {"type": "scalar", "value": True}}
    line = {"definition": "axpy_n", "workload": {"uuid": "w1", "axes": {"M": 4}, "inputs": numbers}}
    dataset(tmp_path / "data", KINDS, [line])
    task, _ = import_foreign(path, tmp_path / "task", "triton", "fp32", {})
    right = checked(judge, task, tmp_path / "right")
    assert right.outcome is Outcome.MEASURED, right.detail
    swapped = checked(judge, task, tmp_path / "swapped", (given, given.replace("y, z", "z, y")))
    assert swapped.outcome is Outcome.INCORRECT, swapped.detail


@pytest.mark.slow
@with_tvm_ffi
def test_it_is_timed_against_another(judge: Judge, tmp_path: Path) -> None:
    task = imported(tmp_path)
    toml = task / "task.toml"
    toml.write_text(toml.read_text().replace("M = 4 }", "M = 4096 }"))
    slow = shutil.copytree(task, tmp_path / "slow")
    (slow / "main.cpp").write_text(GATHER.replace(LOOP, "    for (int again = 0; again < 3; again++)\n" + LOOP))
    seen = judge.compare(Compare(task=str(task), base=str(slow), candidate=str(task), noise=None))
    assert seen.outcome is Outcome.MEASURED, seen.detail
    pairs = [pair for restart in seen.restarts for found in restart.pairs.values() for pair in found]
    assert sum(pair.base_ns for pair in pairs) > 1.5 * sum(pair.candidate_ns for pair in pairs)


@pytest.mark.slow
@with_tvm_ffi
def test_the_compilers_remarks_are_those_on_its_own_files(tmp_path: Path) -> None:
    task = imported(tmp_path)
    remarks = compiler_report(read_spec(task), task, "").remarks
    assert any(one.startswith("main.cpp line ") for one in remarks)
    assert all(one.startswith(("main.cpp line ", "lib/scaled.h line ")) for one in remarks)


@pytest.mark.slow
@with_tvm_ffi
@pytest.mark.skipif(
    shutil.which("nvcc") is None or has_gpu(), reason="needs nvcc, and is about a machine without a GPU"
)
@pytest.mark.parametrize("returning", [False, True])
def test_a_cuda_solution_is_built_where_there_is_no_gpu(
    returning: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rmsnorm(tmp_path / "data", "rmsnorm_h7168", [{"batch_size": 512}], returning)
    task, _ = import_foreign(path, tmp_path / "task", "triton", "fp32", {})
    app(["check", str(task), "--build-for", "90a"], standalone_mode=False)
    assert "the kernel builds for sm_90a" in capsys.readouterr().out
    broken = (task / "rmsnorm.cu").read_text().replace("_FUNC(run,", "_FUNC(ran,")
    (task / "rmsnorm.cu").write_text(broken)
    app(["check", str(task), "--build-for", "90a"], standalone_mode=False)
    assert "__tvm_ffi_run" in capsys.readouterr().out
