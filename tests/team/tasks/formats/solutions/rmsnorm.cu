// RMSNorm of bfloat16 rows, bound by TVM-FFI: eight values a load, sums in single precision, one block a row.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "rmsnorm.cuh"

namespace ffi = tvm::ffi;

void rmsnorm(ffi::TensorView hidden_states, ffi::TensorView weight, ffi::TensorView output) {
    TVM_FFI_ICHECK_EQ(hidden_states.ndim(), 2);
    const int64_t rows = hidden_states.size(0), width = hidden_states.size(1);
    TVM_FFI_CHECK(width % kVector == 0 && weight.size(0) == width, ValueError) << "no rows of " << width;
    const DLDevice device = hidden_states.device();
    auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
    const int vectors = static_cast<int>(width / kVector);
    const int threads = vectors < 32 ? 32 : (vectors < kMost ? (vectors + 31) / 32 * 32 : kMost);
    normalise<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
        static_cast<const uint4*>(hidden_states.data_ptr()), static_cast<const uint4*>(weight.data_ptr()),
        static_cast<uint4*>(output.data_ptr()), vectors, 1e-6f);
    TVM_FFI_ICHECK_EQ(cudaGetLastError(), cudaSuccess);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, rmsnorm);
