// Scalar and shared-memory methods, as every architecture has them. NAME__before, NAME__with and NAME__miss: the parent,
// the method in place, and something that only looks like it. Included into one translation unit by all.cu.

// ---- names of functions are no instructions
extern "C" __global__ void reduction__miss(const float* in, float* out) {  // RED, REDUX, SHFL and REDG in names alone
    out[threadIdx.x] = in[threadIdx.x] + 1.0f;
}
extern "C" __global__ void reduction__before(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void reduction__with(const float* in, float* out) {
    float sum = in[threadIdx.x];
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

extern "C" __global__ void warp_shuffle_sync__before(const float* in, float* out) {
    __shared__ float part[256];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}
extern "C" __global__ void warp_shuffle_sync__with(const float* in, float* out) {
    __shared__ float part[8];
    float sum = in[threadIdx.x];
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; ++warp) sum += part[warp];
        *out = sum;
    }
}
extern "C" __global__ void warp_shuffle_sync__miss(const float* in, float* out) {  // a shuffle beside the same barriers
    __shared__ float part[256];
    part[threadIdx.x] = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = part[0];
}

extern "C" __global__ void reduce_sync_count__before(float* data) {
    __shared__ float tile[256];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    float left = tile[threadIdx.x ^ 1];
    __syncthreads();
    tile[threadIdx.x] = left * 2.0f;
    __syncthreads();
    data[threadIdx.x] = tile[threadIdx.x ^ 2];
}
extern "C" __global__ void reduce_sync_count__with(float* data) {
    __shared__ float tile[2][256];
    tile[0][threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    tile[1][threadIdx.x] = tile[0][threadIdx.x ^ 1] * 2.0f;
    __syncthreads();
    data[threadIdx.x] = tile[1][threadIdx.x ^ 2];
}
extern "C" __global__ void reduce_sync_count__miss(float* data) {  // other arithmetic, the same barriers
    __shared__ float tile[256];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    float left = tile[threadIdx.x ^ 3];
    __syncthreads();
    tile[threadIdx.x] = left + 2.0f;
    __syncthreads();
    data[threadIdx.x] = tile[threadIdx.x ^ 4];
}

// ---- how bytes move
extern "C" __global__ void vectorized_access__before(const float* in, float* out) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 4; ++k) out[at + 1024 * k] = in[at + 1024 * k] * 2.0f;
}
extern "C" __global__ void vectorized_access__with(const float* in, float* out) {  // with a scalar tail, as it must have
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float4 four = reinterpret_cast<const float4*>(in)[at];
    reinterpret_cast<float4*>(out)[at] = make_float4(four.x * 2, four.y * 2, four.z * 2, four.w * 2);
    if (at == 0) out[4096] = in[4096] * 2.0f;
}
extern "C" __global__ void vectorized_access__miss(const float* in, float* out) {  // more of the same scalar accesses
    int at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 16; ++k) out[at + 256 * k] = in[at + 256 * k] * 2.0f;
}

extern "C" __global__ void tiling_smem__before(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += in[k] * in[threadIdx.x + k];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void tiling_smem__with(const float* in, float* out, int n) {
    __shared__ float tile[512];
    float sum = 0.0f;
    for (int from = 0; from < n; from += 256) {
        tile[threadIdx.x] = in[from + threadIdx.x];
        tile[threadIdx.x + 256] = in[from + threadIdx.x + 256];
        __syncthreads();
        for (int k = 0; k < 256; ++k) sum += tile[k] * tile[threadIdx.x + k];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void tiling_smem__miss(const float* in, float* out, int n) {  // __shared__ that is never needed
    __shared__ float tile[512];
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += in[k] * in[threadIdx.x + k];
    if (n < 0) tile[threadIdx.x] = sum;
    out[threadIdx.x] = sum;
}

extern "C" __global__ void cache_and_readonly__before(float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] * 2.0f;
}
extern "C" __global__ void cache_and_readonly__with(float* in, float* out) {
    out[threadIdx.x] = __ldg(in + threadIdx.x) * 2.0f;
}
extern "C" __global__ void cache_and_readonly__miss(float* in, float* out) {  // another cache hint
    out[threadIdx.x] = __ldcs(in + threadIdx.x) * 2.0f;
}

extern "C" __global__ void ldg_cache_modifier_hint__before(const float* __restrict__ in, float* __restrict__ out) {
    out[threadIdx.x] = in[threadIdx.x] * 2.0f;
}
extern "C" __global__ void ldg_cache_modifier_hint__with(const float* __restrict__ in, float* __restrict__ out) {
    out[threadIdx.x] = __ldcs(in + threadIdx.x) * 2.0f;
    out[threadIdx.x + 64] = __ldcg(in + threadIdx.x + 64) * 2.0f;
    __stcs(out + threadIdx.x + 128, 1.0f);
}
extern "C" __global__ void ldg_cache_modifier_hint__miss(const float* __restrict__ in, float* __restrict__ out) {
    out[threadIdx.x] = __ldg(in + threadIdx.x) * 2.0f;  // read-only is another method
}

extern "C" __global__ void explicit_l2_prefetch__before(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += in[k * 1024 + threadIdx.x];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void explicit_l2_prefetch__with(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(in + (k + 4) * 1024 + threadIdx.x));
        sum += in[k * 1024 + threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void explicit_l2_prefetch__miss(const float* in, float* out, int n) {  // loads ahead in registers
    float sum = 0.0f, next = in[threadIdx.x];
    for (int k = 0; k < n; ++k) {
        float now = next;
        next = in[(k + 1) * 1024 + threadIdx.x];
        sum += now;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void smem_register_spilling__before(const float* in, float* out, int at) {
    float kept[64];
    for (int k = 0; k < 64; ++k) kept[k] = in[k * 32 + threadIdx.x];
    for (int k = 0; k < 8; ++k) out[k * 32 + threadIdx.x] = kept[(at + k * 7) % 64];  // indexed: in local memory
}
extern "C" __global__ void smem_register_spilling__with(const float* in, float* out, int at) {
    __shared__ float kept[64][32];
    for (int k = 0; k < 64; ++k) kept[k][threadIdx.x] = in[k * 32 + threadIdx.x];
    for (int k = 0; k < 8; ++k) out[k * 32 + threadIdx.x] = kept[(at + k * 7) % 64][threadIdx.x];
}
extern "C" __global__ void smem_register_spilling__miss(const float* in, float* out, int at) {  // both
    __shared__ float first[32];
    float kept[64];
    first[threadIdx.x] = in[threadIdx.x];
    for (int k = 0; k < 64; ++k) kept[k] = in[k * 32 + threadIdx.x] + first[threadIdx.x ^ 1];
    for (int k = 0; k < 8; ++k) out[k * 32 + threadIdx.x] = kept[(at + k * 7) % 64];
}

// ---- arithmetic
extern "C" __global__ void ilp_unroll_register_tile__before(const float* in, float* out) {
    __shared__ float tile[2][1024];
    for (int k = 0; k < 4; ++k) tile[k % 2][threadIdx.x + 256 * k % 1024] = in[threadIdx.x + 256 * k];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += tile[0][k * 16 + threadIdx.y] * tile[1][k * 16 + threadIdx.x];
    out[threadIdx.y * 16 + threadIdx.x] = sum;
}
extern "C" __global__ void ilp_unroll_register_tile__with(const float* in, float* out) {
    __shared__ float tile[2][1024];
    for (int k = 0; k < 4; ++k) tile[k % 2][threadIdx.x + 256 * k % 1024] = in[threadIdx.x + 256 * k];
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float left[4], right[4];
        for (int i = 0; i < 4; ++i) left[i] = tile[0][k * 64 + threadIdx.y + 16 * i];
        for (int j = 0; j < 4; ++j) right[j] = tile[1][k * 64 + threadIdx.x + 16 * j];
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) out[(threadIdx.y + 16 * i) * 64 + threadIdx.x + 16 * j] = sum[i][j];
}
extern "C" __global__ void ilp_unroll_register_tile__miss(const float* in, float* out) {  // unrolled further, no reuse
    __shared__ float tile[2][1024];
    for (int k = 0; k < 4; ++k) tile[k % 2][threadIdx.x + 256 * k % 1024] = in[threadIdx.x + 256 * k];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += tile[0][k * 16 + threadIdx.y] * tile[1][k * 16 + threadIdx.x];
    out[threadIdx.y * 16 + threadIdx.x] = sum;
}

extern "C" __global__ void fma_and_fast_math__before(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] / in[threadIdx.x + 32] + in[threadIdx.x + 64] / 3.0f;
}
extern "C" __global__ void fma_and_fast_math__with(const float* in, float* out) {
    out[threadIdx.x] = __fdividef(in[threadIdx.x], in[threadIdx.x + 32]) + in[threadIdx.x + 64] * (1.0f / 3.0f);
}
extern "C" __global__ void fma_and_fast_math__miss(const float* in, float* out) {  // more of what was there
    for (int k = 0; k < 2; ++k)
        out[threadIdx.x + k] = in[threadIdx.x] / in[threadIdx.x + 32 + k] + in[threadIdx.x + 64 + k] / 3.0f;
}

extern "C" __global__ void mufu_ex2_softmax_replacement__before(const float* in, float* out) {
    out[threadIdx.x] = expf(in[threadIdx.x]);
}
extern "C" __global__ void mufu_ex2_softmax_replacement__with(const float* in, float* out) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(in[threadIdx.x] * 1.4426950408889634f));
    out[threadIdx.x] = power;
}
extern "C" __global__ void mufu_ex2_softmax_replacement__miss(const float* in, float* out) {  // expf has MUFU.EX2, too
    for (int k = 0; k < 4; ++k) out[threadIdx.x + 32 * k] = expf(in[threadIdx.x + 32 * k]);
}

// ---- atomics
extern "C" __global__ void warp_aggregated_atomics__before(const int* in, int* slots, int* out) {
    if (in[threadIdx.x] > 0) out[atomicAdd(slots + (in[threadIdx.x] & 7), 1)] = threadIdx.x;
}
extern "C" __global__ void warp_aggregated_atomics__with(const int* in, int* slots, int* out) {
    if (in[threadIdx.x] > 0) {
        int slot = in[threadIdx.x] & 7;
        unsigned same = __match_any_sync(__activemask(), slot);
        int leader = __ffs(same) - 1, rank = __popc(same & ((1u << (threadIdx.x & 31)) - 1)), first = 0;
        if (rank == 0) first = atomicAdd(slots + slot, __popc(same));
        out[__shfl_sync(same, first, leader) + rank] = threadIdx.x;
    }
}
extern "C" __global__ void warp_aggregated_atomics__miss(const int* in, int* slots, int* out) {  // still one per thread
    if (in[threadIdx.x] > 1) out[atomicAdd(slots + (in[threadIdx.x] & 15), 2)] = threadIdx.x + 1;
}
// One address for all: the compiler lets the warp's lanes find each other by itself, so that this proves nothing either.
extern "C" __global__ void one_counter__before(const int* in, int* slot, int* out) {
    if (in[threadIdx.x] > 0) out[atomicAdd(slot, 1)] = threadIdx.x;
}
extern "C" __global__ void one_counter__miss(const int* in, int* slot, int* out) {
    if (in[threadIdx.x] > 4) out[atomicAdd(slot, 1)] = threadIdx.x + 2;
}

extern "C" __global__ void atomic_optimize__before(const int* in, int* bins) {
    for (int k = 0; k < 8; ++k) atomicAdd(bins + (in[threadIdx.x + 32 * k] & 255), 1);
}
extern "C" __global__ void atomic_optimize__with(const int* in, int* bins) {
    __shared__ int mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 8; ++k) atomicAdd(mine + (in[threadIdx.x + 32 * k] & 255), 1);
    __syncthreads();
    atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
extern "C" __global__ void atomic_optimize__miss(const int* in, int* bins) {
    for (int k = 0; k < 8; ++k) atomicAdd(bins + (in[threadIdx.x + 64 * k] & 127), 2);
}
