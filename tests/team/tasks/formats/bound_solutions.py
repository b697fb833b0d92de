"""Solutions in C++ and CUDA, bound by TVM-FFI, on disk beside their definitions."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_flashinfer_import import dataset
from trace_data import trace_root

HERE = Path(__file__).parent
with_tvm_ffi = pytest.mark.skipif(importlib.util.find_spec("tvm_ffi") is None, reason="apache-tvm-ffi is not installed")

SCALED = "#pragma once\ninline float scaled(float x, float a) { return a * x; }\n"
GATHER = """\
#include <algorithm>
#include <cstdint>

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "lib/scaled.h"

namespace ffi = tvm::ffi;

void gather(ffi::TensorView x, double a, ffi::TensorView places, ffi::TensorView y) {
    TVM_FFI_CHECK(y.size(1) == x.size(1), ValueError) << "rows of " << x.size(1) << " and of " << y.size(1);
    const int64_t rows = x.size(0), width = x.size(1);
    const auto* from = static_cast<const float*>(x.data_ptr());
    const auto* at = static_cast<const int32_t*>(places.data_ptr());
    auto* to = static_cast<float*>(y.data_ptr());
    for (int64_t row = 0; row < rows; row++) {
        const int64_t source = std::clamp<int64_t>(at[row], 0, rows - 1);
        for (int64_t column = 0; column < width; column++) {
            to[row * width + column] = scaled(from[source * width + column], static_cast<float>(a));
        }
    }
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, gather);
"""
RETURNING = (
    GATHER.replace("TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, gather);\n", "")
    + """\
ffi::Tensor returned(ffi::Tensor x, double a, ffi::Tensor places) {
    ffi::Tensor scratch = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
    std::fill_n(static_cast<float*>(scratch.data_ptr()), scratch.numel(), 7.0f);
    ffi::Tensor y = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
    gather(x, a, places, y);
    return y;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, returned);
"""
)


def told(text: str = GATHER, **spec: Any) -> dict[str, Any]:
    """A solution of ``axpy_n`` in C++ as its file has it."""
    return {
        "name": "axpy_cpp_0badcafe",
        "definition": "axpy_n",
        "author": "somebody",
        "spec": {"language": "cpp", "target_hardware": ["cpu"], "entry_point": "main.cpp::run", **spec},
        "sources": [{"path": "main.cpp", "content": text}, {"path": "lib/scaled.h", "content": SCALED}],
    }


def on_disk(folder: Path, solution: dict[str, Any]) -> Path:
    """The solution's file in a data set that has its definition."""
    dataset(folder)
    path = folder / "solutions" / f"{solution['name']}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(solution))
    return path


RMSNORM_RETURNING = (
    (
        "void rmsnorm(ffi::TensorView hidden_states, ffi::TensorView weight, ffi::TensorView output) {",
        "ffi::Tensor rmsnorm(ffi::TensorView hidden_states, ffi::TensorView weight) {\n"
        "    ffi::Tensor output = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, hidden_states.shape(),\n"
        "                                                   hidden_states.dtype(), hidden_states.device());",
    ),
    ("cudaSuccess);\n}", "cudaSuccess);\n    return output;\n}"),
)


def rmsnorm(folder: Path, name: str, axes: list[dict[str, int]], returning: bool = False) -> Path:
    """The file of a CUDA solution of one of the public rmsnorm definitions, on workloads of these axes."""
    for place in ("definitions", "workloads", "solutions"):
        (folder / place).mkdir(parents=True)
    shutil.copyfile(trace_root() / "definitions" / "rmsnorm" / f"{name}.json", folder / "definitions" / f"{name}.json")
    lines = [
        json.dumps({"definition": name, "workload": {"uuid": f"case-{at}", "axes": one}}) for at, one in enumerate(axes)
    ]
    (folder / "workloads" / f"{name}.jsonl").write_text("\n".join(lines))
    texts = {file: (HERE / "solutions" / file).read_text() for file in ("rmsnorm.cu", "rmsnorm.cuh")}
    for old, new in RMSNORM_RETURNING if returning else ():
        assert texts["rmsnorm.cu"].count(old) == 1
        texts["rmsnorm.cu"] = texts["rmsnorm.cu"].replace(old, new)
    solution = {
        "name": f"{name}_cuda",
        "definition": name,
        "author": "somebody",
        "spec": {
            "language": "cuda",
            "target_hardware": ["cuda"],
            "entry_point": "rmsnorm.cu::run",
            "destination_passing_style": not returning,
            "binding": "tvm-ffi",
        },
        "sources": [{"path": path, "content": text} for path, text in texts.items()],
    }
    path = folder / "solutions" / "rmsnorm.json"
    path.write_text(json.dumps(solution))
    return path
