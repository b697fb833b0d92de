// Tensor memory and what else only sm_100a has, and block scaling of sm_120a.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
extern "C" __global__ void tcgen05__before(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
__device__ void tensor_f16(unsigned d, unsigned long long a, unsigned long long b) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"
                 ::"r"(d), "l"(a), "l"(b), "r"(1));
}
__device__ void tensor_fp8(unsigned d, unsigned long long a, unsigned long long b) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;}"
                 ::"r"(d), "l"(a), "l"(b), "r"(1));
}
extern "C" __global__ void tcgen05__with(unsigned d, unsigned long long a, unsigned long long b) { tensor_f16(d, a, b); }
extern "C" __global__ void tcgen05__miss(const unsigned* a, const unsigned* b, float* d) {  // more of a warp's products
    float c[4] = {};
    for (int k = 0; k < 2; ++k)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[4 * k]), "r"(a[4 * k + 1]), "r"(a[4 * k + 2]), "r"(a[4 * k + 3]), "r"(b[2 * k]), "r"(b[2 * k + 1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}

extern "C" __global__ void fp8_fast_accumulation_mode__before(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_f16(d, a, b);
}
extern "C" __global__ void fp8_fast_accumulation_mode__with(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_fp8(d, a, b);
}
extern "C" __global__ void fp8_fast_accumulation_mode__miss(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_f16(d, a, b);
    tensor_f16(d, a + 1, b + 1);
}

extern "C" __global__ void gemm_softmax_interleave__before(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_f16(d, a, b);
}
extern "C" __global__ void gemm_softmax_interleave__with(unsigned d, unsigned long long a, unsigned long long b, float* out) {
    tensor_f16(d, a, b);
    float power;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(out[threadIdx.x]));
    out[threadIdx.x] = power;
    tensor_f16(d, a + 1, b + 1);
}
extern "C" __global__ void gemm_softmax_interleave__miss(float* out) {  // powers without a product
    float power;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(out[threadIdx.x]));
    out[threadIdx.x] = power;
}

extern "C" __global__ void block_scaled_precision__before(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_f16(d, a, b);
}
extern "C" __global__ void block_scaled_precision__with(unsigned d, unsigned long long a, unsigned long long b, unsigned scale) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X "
                 "[%0], %1, %2, %3, [%4], [%4], p;}" ::"r"(d), "l"(a), "l"(b), "r"(1), "r"(scale));
}
extern "C" __global__ void block_scaled_precision__miss(unsigned d, unsigned long long a, unsigned long long b) {
    tensor_f16(d, a, b);
    tensor_f16(d, a + 1, b + 1);
}

extern "C" __global__ void cluster_launch_control_scheduler__before(float* out) { out[blockIdx.x] = 1.0f; }
extern "C" __global__ void cluster_launch_control_scheduler__with(float* out) {
    __shared__ __align__(16) uint4 answer;
    __shared__ unsigned long long barrier;
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                 ::"r"((unsigned)__cvta_generic_to_shared(&answer)), "r"((unsigned)__cvta_generic_to_shared(&barrier)));
    __syncthreads();
    out[blockIdx.x] = (float)answer.x;
}
extern "C" __global__ void cluster_launch_control_scheduler__miss(float* out, int* next) {  // a counter in memory
    __shared__ int mine;
    if (threadIdx.x == 0) mine = atomicAdd(next, 1);
    __syncthreads();
    out[mine] = 1.0f;
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
extern "C" __global__ void block_scaled_precision__before(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void block_scaled_precision__with(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12, %12}, %11, {%12, %12};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a[4]), "r"(b[4]), "h"((short)0));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void block_scaled_precision__miss(const unsigned* a, const unsigned* b, float* d) {  // plain FP8, twice
    float c[4] = {};
    for (int k = 0; k < 2; ++k)
        asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[4 * k]), "r"(a[4 * k + 1]), "r"(a[4 * k + 2]), "r"(a[4 * k + 3]), "r"(b[2 * k]), "r"(b[2 * k + 1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
#endif
