// Copies that nobody waits for, barriers in memory, and fragments: from sm_80 on.

__device__ unsigned at_shared(const void* address) { return (unsigned)__cvta_generic_to_shared(address); }
__device__ void copy16(void* into, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_shared(into)), "l"(from));
}
__device__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ void await() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

extern "C" __global__ void async_copy__before(const float4* in, float4* out) {
    __shared__ float4 tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void async_copy__with(const float4* in, float4* out) {
    __shared__ float4 tile[256];
    copy16(tile + threadIdx.x, in + threadIdx.x);
    commit();
    await<0>();
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void async_copy__miss(const float4* in, float4* out) {  // two tiles, each waited for
    __shared__ float4 tile[2][256];
    tile[0][threadIdx.x] = in[threadIdx.x];
    tile[1][threadIdx.x] = in[threadIdx.x + 256];
    __syncthreads();
    out[threadIdx.x] = tile[0][threadIdx.x ^ 1];
    out[threadIdx.x + 256] = tile[1][threadIdx.x ^ 1];
}

extern "C" __global__ void multi_stage_pipeline__before(const float4* in, float4* out, int n) {
    __shared__ float4 tile[256];
    for (int k = 0; k < n; ++k) {
        copy16(tile + threadIdx.x, in + 256 * k + threadIdx.x);
        commit();
        await<0>();
        __syncthreads();
        out[256 * k + threadIdx.x] = tile[threadIdx.x ^ 1];
        __syncthreads();
    }
}
extern "C" __global__ void multi_stage_pipeline__with(const float4* in, float4* out, int n) {
    __shared__ float4 tile[3][256];
    for (int k = 0; k < 2; ++k) {
        copy16(tile[k] + threadIdx.x, in + 256 * k + threadIdx.x);
        commit();
    }
    for (int k = 0; k < n; ++k) {
        await<1>();
        __syncthreads();
        copy16(tile[(k + 2) % 3] + threadIdx.x, in + 256 * (k + 2) + threadIdx.x);
        commit();
        out[256 * k + threadIdx.x] = tile[k % 3][threadIdx.x ^ 1];
    }
}
extern "C" __global__ void multi_stage_pipeline__miss(const float4* in, float4* out, int n) {  // two copies, one stage
    __shared__ float4 tile[512];
    for (int k = 0; k < n; ++k) {
        copy16(tile + threadIdx.x, in + 512 * k + threadIdx.x);
        copy16(tile + 256 + threadIdx.x, in + 512 * k + 256 + threadIdx.x);
        commit();
        await<0>();
        __syncthreads();
        out[512 * k + threadIdx.x] = tile[threadIdx.x ^ 1];
        out[512 * k + 256 + threadIdx.x] = tile[256 + (threadIdx.x ^ 1)];
        __syncthreads();
    }
}

extern "C" __global__ void ldmatrix_stmatrix__before(const unsigned* in, unsigned* out) {
    __shared__ unsigned tile[1024];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned sum = 0;
    for (int k = 0; k < 4; ++k) sum += tile[threadIdx.x / 4 * 4 + threadIdx.x % 4 + 32 * k];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void ldmatrix_stmatrix__with(const unsigned* in, unsigned* out) {
    __shared__ __align__(16) unsigned tile[1024];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    unsigned a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at_shared(tile + 4 * (threadIdx.x % 32))));
    out[threadIdx.x] = a + b + c + d;
}
extern "C" __global__ void ldmatrix_stmatrix__miss(const unsigned* in, unsigned* out) {  // wide loads of shared memory
    __shared__ __align__(16) unsigned tile[1024];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    uint4 four = *reinterpret_cast<uint4*>(tile + 4 * (threadIdx.x % 32));
    out[threadIdx.x] = four.x + four.y + four.z + four.w;
}

// ---- barriers in shared memory
__device__ void barrier_init(void* barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at_shared(barrier)), "r"(count));
}
__device__ unsigned long long barrier_arrive(void* barrier) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at_shared(barrier)));
    return state;
}
__device__ bool barrier_test(void* barrier, unsigned long long state) {
    int done;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at_shared(barrier)), "l"(state));
    return done;
}

extern "C" __global__ void asymmetric_mbarrier_sync__before(const float* in, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void asymmetric_mbarrier_sync__with(const float* in, float* out) {
    __shared__ float tile[256];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) barrier_init(&barrier, 256);
    __syncthreads();
    tile[threadIdx.x] = in[threadIdx.x];
    unsigned long long state = barrier_arrive(&barrier);
    while (!barrier_test(&barrier, state)) {}
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void asymmetric_mbarrier_sync__miss(const float* in, float* out) {  // copies have DEPBAR as well
    __shared__ __align__(16) float tile[256];
    if (threadIdx.x < 64) copy16(tile + 4 * threadIdx.x, in + 4 * threadIdx.x);
    commit();
    await<0>();
    __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}

extern "C" __global__ void warp_specialization__before(const float* in, float* out, int n) {
    __shared__ float tile[256];
    for (int k = 0; k < n; ++k) {
        tile[threadIdx.x] = in[256 * k + threadIdx.x];
        __syncthreads();
        out[256 * k + threadIdx.x] = tile[255 - threadIdx.x];
        __syncthreads();
    }
}
extern "C" __global__ void warp_specialization__with(const float* in, float* out, int n) {
    __shared__ float tile[2][128];
    bool copies = threadIdx.x < 128;
    int lane = threadIdx.x % 128;
    for (int k = 0; k < n; ++k) {
        if (copies) {
            if (k > 1) asm volatile("bar.sync %0, 256;" ::"r"(3 + k % 2));
            tile[k % 2][lane] = in[128 * k + lane];
            asm volatile("bar.arrive %0, 256;" ::"r"(1 + k % 2));
        } else {
            asm volatile("bar.sync %0, 256;" ::"r"(1 + k % 2));
            out[128 * k + lane] = tile[k % 2][127 - lane];
            asm volatile("bar.arrive %0, 256;" ::"r"(3 + k % 2));
        }
    }
}
extern "C" __global__ void warp_specialization__miss(const float4* in, float* out, int n) {  // DEPBAR, no roles
    __shared__ float4 tile[256];
    for (int k = 0; k < n; ++k) {
        copy16(tile + threadIdx.x, in + 256 * k + threadIdx.x);
        commit();
        await<0>();
        __syncthreads();
        out[256 * k + threadIdx.x] = tile[255 - threadIdx.x].x;
        __syncthreads();
    }
}
