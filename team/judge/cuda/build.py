"""How CUDA sources are built: the judge's flags, one architecture, and a header that keeps common code capturable."""

from collections.abc import Mapping
from pathlib import Path

from team.judge.build import Recipe
from team.tasks.signature import STREAM, Parameter, Signature

CAPTURE = "kernelteam_capture.h"
_BASE = ("-O3", "-std=c++17", "-lineinfo")
_SHAPE = ("-Xptxas", "-v", "--default-stream", "per-thread", "-Xcompiler", "-fPIC,-fno-gnu-unique", "-shared")
_FAST = ("--use_fast_math",)
_WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize")

_CAPTURE_TEXT = """\
// Put before every kernel by the judge: while launches are captured into a graph, waiting for them has no meaning (the
// graph keeps their order), so these two calls wait only when nothing is being captured.
#pragma once
#include <cuda_runtime.h>
#ifdef __cplusplus
namespace kernelteam {
static inline bool captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}
static inline cudaError_t device_synchronize() {
    return captured(cudaStreamPerThread) ? cudaSuccess : (cudaDeviceSynchronize)();
}
static inline cudaError_t stream_synchronize(cudaStream_t stream) {
    return captured(stream == nullptr ? cudaStreamPerThread : stream) ? cudaSuccess : (cudaStreamSynchronize)(stream);
}
}  // namespace kernelteam
#define cudaDeviceSynchronize() ::kernelteam::device_synchronize()
#undef cudaStreamSynchronize
#define cudaStreamSynchronize(stream) ::kernelteam::stream_synchronize(stream)
#endif
"""


def kernel_recipe(
    files: Mapping[str, str],
    source: str,
    target: str,
    numerics: str,
    override: tuple[str, ...] | None,
    timeout_s: float,
) -> Recipe:
    """How to build a kernel for compute capability ``target`` (such as ``90a``)."""
    chosen = _BASE if override is None else override
    fast = _FAST if numerics == "approximate" else ()
    flags = (*chosen, *_SHAPE, *fast, architecture(target), "-include", CAPTURE)
    return Recipe({**files, CAPTURE: _CAPTURE_TEXT}, source, flags, timeout_s, waits_remark(files))


def architecture(target: str) -> str:
    """The compiler's option for exactly one architecture with all its features."""
    return f"-gencode=arch=compute_{target},code=sm_{target}"


def program_recipe(target: str) -> Recipe:
    """How to build the CUDA runner."""
    folder = Path(__file__).parent.parent / "runner"
    files = {name: (folder / name).read_text() for name in ("runner.cu", "order.h", "wire.h", "sandbox.h")}
    flags = ("-O2", "-std=c++17", architecture(target), "-Xlinker", "-z,now,-z,relro")
    return Recipe(files, "runner.cu", flags, ours=True)


def lent_signature(signature: Signature) -> Signature:
    """The call that the shim makes: the task's parameters, and the stream behind them.

    A ``solve`` that takes no stream never looks at the additional argument: the caller cleans up.
    """
    return Signature((*signature.without_stream().parameters, Parameter("stream", STREAM, pointer=False, const=False)))


def waits_remark(files: Mapping[str, str]) -> tuple[str, ...]:
    """What the record of the build says about calls that the capture header turns off."""
    found = [name for name in _WAITS if any(name in text for text in files.values())]
    return tuple(f"{name} does not wait while launches are captured into a graph" for name in found)
