// Matrix instructions of a warp group, and registers handed over: sm_90a alone.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ void group_arrive() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void group_wait() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
__device__ void product_f16(float (&d)[4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}
__device__ void product_fp8(float (&d)[4], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}
__device__ float power(float x) {
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ void store(float* out, const float (&d)[4]) {
    for (int i = 0; i < 4; ++i) out[threadIdx.x + 128 * i] = d[i];
}

extern "C" __global__ void wgmma__before(unsigned long long a, unsigned long long b, float* out) {
    out[threadIdx.x] = (float)(a + b);
}
extern "C" __global__ void wgmma__with(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    store(out, d);
}
extern "C" __global__ void wgmma__miss(const unsigned* a, const unsigned* b, float* d) {  // a warp's instruction
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    store(d, c);
}

extern "C" __global__ void fp8_fast_accumulation_mode__before(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    store(out, d);
}
extern "C" __global__ void fp8_fast_accumulation_mode__with(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_fp8(d, a, b);
    group_wait();
    store(out, d);
}
extern "C" __global__ void fp8_fast_accumulation_mode__miss(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};  // more of the same in halves
    group_arrive();
    product_f16(d, a, b);
    product_f16(d, a + 1, b + 1);
    group_wait();
    store(out, d);
}

extern "C" __global__ void two_level_accumulation_promotion__before(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_fp8(d, a, b);
    product_fp8(d, a + 1, b + 1);
    group_wait();
    store(out, d);
}
extern "C" __global__ void two_level_accumulation_promotion__with(unsigned long long a, unsigned long long b, float* out) {
    float sum[4] = {}, d[4] = {};
    for (int k = 0; k < 2; ++k) {
        for (int i = 0; i < 4; ++i) d[i] = 0.0f;
        group_arrive();
        product_fp8(d, a + k, b + k);
        group_wait();
        for (int i = 0; i < 4; ++i) sum[i] += d[i];
    }
    store(out, sum);
}
extern "C" __global__ void two_level_accumulation_promotion__miss(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};  // a longer chain inside the tensor cores
    group_arrive();
    for (int k = 0; k < 4; ++k) product_fp8(d, a + k, b + k);
    group_wait();
    store(out, d);
}

extern "C" __global__ void gemm_softmax_interleave__before(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    store(out, d);
}
extern "C" __global__ void gemm_softmax_interleave__with(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {}, e[4] = {};
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    group_arrive();
    product_f16(e, a + 1, b + 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    for (int i = 0; i < 4; ++i) d[i] = power(d[i]);
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) d[i] += e[i];
    store(out, d);
}
extern "C" __global__ void gemm_softmax_interleave__miss(const float* in, float* out) {  // powers without a product
    for (int i = 0; i < 4; ++i) out[threadIdx.x + 128 * i] = power(in[threadIdx.x + 128 * i]);
}

extern "C" __global__ void __launch_bounds__(384, 1)
pingpong_warpgroup_schedule__before(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    __syncthreads();
    store(out, d);
}
extern "C" __global__ void __launch_bounds__(384, 1)
pingpong_warpgroup_schedule__with(unsigned long long a, unsigned long long b, float* out) {
    float d[4] = {};
    int group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    asm volatile("bar.sync %0, 256;" ::"r"(group));
    group_arrive();
    product_f16(d, a, b);
    group_wait();
    asm volatile("bar.arrive %0, 256;" ::"r"(3 - group));
    store(out, d);
}
extern "C" __global__ void __launch_bounds__(384, 1)
pingpong_warpgroup_schedule__miss(unsigned long long a, unsigned long long b, float* out) {  // roles, all in step
    float d[4] = {};
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        group_arrive();
        product_f16(d, a, b);
        group_wait();
    }
    __syncthreads();
    store(out, d);
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM120_ALL)
extern "C" __global__ void __launch_bounds__(384, 1)
producer_regdealloc_setmaxnreg__before(const float* in, float* out) {
    out[threadIdx.x] = threadIdx.x < 128 ? in[threadIdx.x] : in[threadIdx.x] * in[threadIdx.x + 384];
}
extern "C" __global__ void __launch_bounds__(384, 1)
producer_regdealloc_setmaxnreg__with(const float* in, float* out) {
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        out[threadIdx.x] = in[threadIdx.x];
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        out[threadIdx.x] = in[threadIdx.x] * in[threadIdx.x + 384];
    }
}
extern "C" __global__ void __launch_bounds__(128, 4)  // bounds alone hand nothing over
producer_regdealloc_setmaxnreg__miss(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] * in[threadIdx.x + 384];
}
#endif
