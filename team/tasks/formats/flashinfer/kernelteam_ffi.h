// Calls an entry point that is bound by TVM-FFI on buffers that somebody lends: what `solve` of such a task is made of.
//
// Not to be edited: it is copied into the task. It runs in the runner, beside the kernel that it calls, so nothing that it
// says is evidence of anything. What goes wrong in the call ends the process, as a crash of any kernel does.
//
// A call is made on one stream, which the kernel may ask for. What it allocates by way of its environment is given back
// in the order of that stream, so a call can be captured into a graph. Where outputs are returned, what is allocated with
// the shape and type of one output alone is the lent buffer itself, so that returning it costs no copy.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#else
struct __half;  // only their addresses are passed on
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
#endif

namespace kernelteam {

using Entry = int (*)(void* self, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result);

// Memory of one device, in the order of one stream.
class Place {
  public:
    explicit Place(void* stream) : stream_(stream) {
#ifdef __CUDACC__
        if (cudaGetDevice(&device_.device_id) != cudaSuccess) throw std::runtime_error("no CUDA device");
        void* before = nullptr;
        TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream, &before));
#endif
    }

    DLDevice device() const { return device_; }

    void* take(size_t size) const {
        void* at = nullptr;
#ifdef __CUDACC__
        if (cudaMallocAsync(&at, size, static_cast<cudaStream_t>(stream_)) != cudaSuccess) return nullptr;
#else
        at = std::aligned_alloc(64, (size + 63) / 64 * 64);
#endif
        return at;
    }

    void give_back(void* at) const {
#ifdef __CUDACC__
        cudaFreeAsync(at, static_cast<cudaStream_t>(stream_));
#else
        std::free(at);
#endif
    }

    void copy(void* to, const void* from, size_t size) const {
#ifdef __CUDACC__
        auto stream = static_cast<cudaStream_t>(stream_);
        if (cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream) != cudaSuccess) {
            throw std::runtime_error("an output cannot be copied");
        }
#else
        std::memcpy(to, from, size);
#endif
    }

  private:
#ifdef __CUDACC__
    DLDevice device_{kDLCUDA, 0};
#else
    DLDevice device_{kDLCPU, 0};
#endif
    void* stream_;
};

// A tensor's memory belongs to whoever lent it.
struct Lent {
    void* at;
    void AllocData(DLTensor* tensor) { tensor->data = at; }
    void FreeData(DLTensor*) {}
};

inline bool same_form(const DLTensor& one, const DLTensor& other) {
    return one.ndim == other.ndim && one.dtype.code == other.dtype.code && one.dtype.bits == other.dtype.bits &&
           one.dtype.lanes == other.dtype.lanes && std::equal(one.shape, one.shape + one.ndim, other.shape);
}

class Call {
  public:
    explicit Call(void* stream = nullptr) : place_(stream) {}

    void input(const void* at, std::initializer_list<int64_t> shape, DLDataType type) {
        arguments_.push_back(lent(at, shape, type));
    }

    void output(void* at, std::initializer_list<int64_t> shape, DLDataType type) {
        outputs_.push_back(lent(at, shape, type));
        handed_out_.push_back(false);
    }

    template <class Number>
    void number(Number value) {
        arguments_.push_back(tvm::ffi::Any(value));
    }

    // The entry point writes into the outputs, which follow the inputs.
    void in_place(Entry entry) {
        for (const tvm::ffi::Tensor& output : outputs_) arguments_.push_back(tvm::ffi::Any(output));
        make(entry);
    }

    // The entry point returns the outputs.
    void returning(Entry entry) {
        returns_ = true;
        const tvm::ffi::Any result = make(entry);
        if (const auto one = result.as<tvm::ffi::Tensor>()) {
            if (outputs_.size() != 1) throw std::runtime_error("one tensor was returned in the place of several");
            keep(0, *one);
            return;
        }
        const auto several = result.cast<tvm::ffi::Array<tvm::ffi::Tensor>>();
        if (several.size() != outputs_.size()) throw std::runtime_error("another number of outputs was returned");
        for (size_t number = 0; number < outputs_.size(); number++) keep(number, several[number]);
    }

  private:
    // What an allocation of the environment is made of.
    struct Block {
        DLManagedTensorVersioned managed{};
        std::vector<int64_t> extents;  // shape, then strides
        Place place;
        bool lent = false;
    };

    tvm::ffi::Tensor lent(const void* at, std::initializer_list<int64_t> shape, DLDataType type) const {
        const tvm::ffi::ShapeView extents(shape.begin(), shape.size());
        return tvm::ffi::Tensor::FromNDAlloc(Lent{const_cast<void*>(at)}, extents, type, place_.device());
    }

    tvm::ffi::Any make(Entry entry) {
        DLPackManagedTensorAllocator before = nullptr;
        TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvSetDLPackManagedTensorAllocator(&Call::allocate, 0, &before));
        std::vector<tvm::ffi::AnyView> views(arguments_.begin(), arguments_.end());
        tvm::ffi::Any result;
        current() = this;
        const int failed = entry(nullptr, reinterpret_cast<const TVMFFIAny*>(views.data()),
                                 static_cast<int32_t>(views.size()), reinterpret_cast<TVMFFIAny*>(&result));
        current() = nullptr;
        TVM_FFI_CHECK_SAFE_CALL(failed);
        return result;
    }

    void keep(size_t number, const tvm::ffi::Tensor& got) const {
        const DLTensor& from = *got.GetDLTensorPtr();
        const DLTensor& to = *outputs_[number].GetDLTensorPtr();
        if (from.device.device_type != to.device.device_type || !same_form(from, to) || !got.IsContiguous()) {
            throw std::runtime_error("an output of another shape, type or place was returned");
        }
        const char* at = static_cast<const char*>(from.data) + from.byte_offset;
        if (at != to.data) place_.copy(to.data, at, tvm::ffi::GetDataSize(to));
    }

    // The lent buffer of the one output that has this form, once in a call; else nothing.
    void* hand_out(const DLTensor& wanted) {
        size_t found = outputs_.size();
        if (!returns_) return nullptr;  // the kernel has them already
        for (size_t number = 0; number < outputs_.size(); number++) {
            if (!same_form(wanted, *outputs_[number].GetDLTensorPtr())) continue;
            if (found != outputs_.size()) return nullptr;
            found = number;
        }
        if (found == outputs_.size() || handed_out_[found]) return nullptr;
        handed_out_[found] = true;
        return outputs_[found].data_ptr();
    }

    static int allocate(DLTensor* wanted, DLManagedTensorVersioned** out, void* error,
                        void (*set_error)(void* error, const char* kind, const char* message)) {
        Call* call = current();
        if (call == nullptr || wanted->device.device_type != call->place_.device().device_type) {
            set_error(error, "RuntimeError", "memory is to be had within a call and on its device alone");
            return -1;
        }
        auto* block = new Block{{}, {}, call->place_, false};
        DLTensor& tensor = block->managed.dl_tensor;
        tensor = *wanted;
        tensor.device = call->place_.device();
        tensor.byte_offset = 0;
        tensor.data = call->hand_out(*wanted);
        block->lent = tensor.data != nullptr;
        const size_t size = tvm::ffi::GetDataSize(*wanted);
        if (!block->lent) tensor.data = call->place_.take(std::max<size_t>(size, 1));
        if (tensor.data == nullptr) {
            delete block;
            set_error(error, "RuntimeError", "there is no memory left");
            return -1;
        }
        block->extents.assign(wanted->shape, wanted->shape + wanted->ndim);
        block->extents.resize(2 * static_cast<size_t>(wanted->ndim) + 1);
        tensor.shape = block->extents.data();
        tensor.strides = tensor.shape + tensor.ndim;
        int64_t stride = 1;
        for (int32_t at = tensor.ndim - 1; at >= 0; stride *= tensor.shape[at], at--) tensor.strides[at] = stride;
        block->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
        block->managed.manager_ctx = block;
        block->managed.deleter = &Call::release;
        *out = &block->managed;
        return 0;
    }

    static void release(DLManagedTensorVersioned* managed) {
        auto* block = static_cast<Block*>(managed->manager_ctx);
        if (!block->lent) block->place.give_back(managed->dl_tensor.data);
        delete block;
    }

    static Call*& current() {
        static thread_local Call* call = nullptr;
        return call;
    }

    Place place_;
    std::vector<tvm::ffi::Any> arguments_;
    std::vector<tvm::ffi::Tensor> outputs_;
    std::vector<bool> handed_out_;
    bool returns_ = false;
};

}  // namespace kernelteam
