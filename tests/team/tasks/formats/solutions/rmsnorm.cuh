// One row of RMSNorm to a block.
#pragma once
#include <cstdint>
#include <cuda_bf16.h>

constexpr int kVector = 8;  // bfloat16 values of 16 bytes
constexpr int kMost = 512;  // threads of a block

__device__ inline float sum_of(float mine) {
    __shared__ float parts[kMost / 32];
    for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    float total = 0.0f;
    for (unsigned warp = 0; warp < blockDim.x / 32; warp++) total += parts[warp];
    return total;
}

__global__ void normalise(const uint4* rows, const uint4* weight, uint4* output, int vectors, float epsilon) {
    const uint4* row = rows + static_cast<int64_t>(blockIdx.x) * vectors;
    float squares = 0.0f;
    for (int at = threadIdx.x; at < vectors; at += blockDim.x) {
        const uint4 held = row[at];
        const auto* values = reinterpret_cast<const __nv_bfloat16*>(&held);
        for (int k = 0; k < kVector; k++) squares += __bfloat162float(values[k]) * __bfloat162float(values[k]);
    }
    const float scale = rsqrtf(sum_of(squares) / static_cast<float>(vectors * kVector) + epsilon);
    for (int at = threadIdx.x; at < vectors; at += blockDim.x) {
        const uint4 held = row[at], factors = weight[at];
        const auto* values = reinterpret_cast<const __nv_bfloat16*>(&held);
        const auto* by = reinterpret_cast<const __nv_bfloat16*>(&factors);
        uint4 result;
        auto* made = reinterpret_cast<__nv_bfloat16*>(&result);
        for (int k = 0; k < kVector; k++) {
            made[k] = __float2bfloat16(__bfloat162float(values[k]) * scale * __bfloat162float(by[k]));
        }
        output[static_cast<int64_t>(blockIdx.x) * vectors + at] = result;
    }
}
