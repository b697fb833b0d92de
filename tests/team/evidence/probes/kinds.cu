// More of what the table looks for, without a method of its own: each must still be what nvcc makes of it.

__device__ void warp_f64(double (&c)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}
extern "C" __global__ void kinds__doubles(const double* in, double* out) {  // DMMA, DFMA, DADD, DMUL
    double c[2] = {};
    warp_f64(c, in[threadIdx.x], in[threadIdx.x + 32]);
    out[threadIdx.x] = in[1] * in[2] + in[3];
    out[threadIdx.x + 32] = in[4] + c[0];
    out[threadIdx.x + 64] = in[5] * c[1];
}
extern "C" __global__ void kinds__halves(const unsigned* in, unsigned* out) {  // BF16 products, HFMA2, conversions back
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]));
    unsigned two = in[6];
    asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(two) : "r"(in[7]), "r"(in[8]));
    float back;
    asm volatile("{.reg .b16 h; mov.b32 {h, _}, %1; cvt.f32.f16 %0, h;}" : "=f"(back) : "r"(in[9]));
    out[threadIdx.x] = two + (unsigned)(c[0] + c[1] + c[2] + c[3] + back);
}
extern "C" __global__ void kinds__votes(const int* in, int* out) {  // VOTE, MATCH, POPC, REDUX, BAR.RED
    unsigned same = __match_any_sync(0xffffffffu, in[threadIdx.x]);
    unsigned some = __ballot_sync(0xffffffffu, in[threadIdx.x] > 3);
    unsigned sum = __reduce_add_sync(0xffffffffu, (unsigned)in[threadIdx.x + 32]);
    int count = __syncthreads_count(in[threadIdx.x] > 7);
    out[threadIdx.x] = __popc(same) + __popc(some) + sum + count;
}
extern "C" __global__ void kinds__uniform_atomic(int* counter, int* out, int n) {  // the compiler aggregates this itself
    if ((int)threadIdx.x < n) out[threadIdx.x] = atomicAdd(counter, 1);
}
extern "C" __global__ void kinds__generic_atomic(int* a, int* out, int shared) {  // ATOM: where it points is not known
    __shared__ int mine[32];
    mine[threadIdx.x] = 0;
    int* either = shared ? mine + threadIdx.x : a;
    out[threadIdx.x] = atomicAdd(either, 3);
}
extern "C" __global__ void kinds__hints(const float* in, float* out) {  // every hint on a load and a store
    float a, b, c;
    asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(a) : "l"(in));
    asm volatile("ld.global.lu.f32 %0, [%1];" : "=f"(b) : "l"(in + 64));
    asm volatile("ld.relaxed.cta.global.f32 %0, [%1];" : "=f"(c) : "l"(in + 128));
    asm volatile("ld.global.L1::no_allocate.f32 %0, [%1];" : "=f"(out[4]) : "l"(in + 192));
    asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(out[5]) : "l"(in + 256));
    asm volatile("st.global.cg.f32 [%0], %1;" ::"l"(out), "f"(a));
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(out + 64), "f"(b));
    asm volatile("st.global.L1::evict_last.f32 [%0], %1;" ::"l"(out + 128), "f"(c));
    asm volatile("st.global.L1::no_allocate.f32 [%0], %1;" ::"l"(out + 192), "f"(c));
}
extern "C" __global__ void kinds__pairs(const float2* in, float2* out) { out[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void kinds__transposed(const unsigned* in, unsigned* out) {  // MOVM
    unsigned turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = turned;
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void kinds__stored_matrix(const unsigned* in, unsigned* out) {  // STSM
    __shared__ __align__(16) unsigned tile[128];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"((unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x)), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]));
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void kinds__bulk_prefetch(const __grid_constant__ Map map, const float* in) {  // UBLKPF, UTMAPF
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(in));
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %1}];" ::"l"(&map), "r"(0));
}
extern "C" __global__ void kinds__far_store(float* out) {  // ST: to another block's shared memory
    __shared__ float tile[32];
    unsigned far;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(far) : "r"(s32(tile + threadIdx.x)));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(far), "f"(out[threadIdx.x]));
    cluster_sync();
    out[threadIdx.x] = tile[threadIdx.x];
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __global__ void kinds__wgmma(unsigned long long a, unsigned long long b, unsigned e, float* out) {
    int i[4] = {};  // IGMMA, HGMMA.TF32, HGMMA.SP, HGMMA.BF16
    float f[4] = {}, g[4] = {}, h[4] = {};
    group_arrive();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0,%1,%2,%3}, %4, %5, 1;"
                 : "+r"(i[0]), "+r"(i[1]), "+r"(i[2]), "+r"(i[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, %6, 0, 1, 1, 1, 0, 0;"
                 : "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3]) : "l"(a), "l"(b), "r"(e));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(h[0]), "+f"(h[1]), "+f"(h[2]), "+f"(h[3]) : "l"(a), "l"(b));
    group_wait();
    for (int k = 0; k < 4; ++k) out[threadIdx.x + 128 * k] = f[k] + g[k] + h[k] + i[k];
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
extern "C" __global__ void kinds__tcgen05(unsigned d, unsigned long long a, unsigned long long b, unsigned sa, unsigned sb) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;}"
                 ::"r"(d), "l"(a), "l"(b), "r"(1));
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;}"
                 ::"r"(d), "l"(a), "l"(b), "r"(1));
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%4], %3, p;}"
                 ::"r"(d), "l"(a), "l"(b), "r"(1), "r"(sa));
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale "
                 "[%0], %1, %2, %3, [%4], [%5], p;}" ::"r"(d), "l"(a), "l"(b), "r"(1), "r"(sa), "r"(sb));
}
#endif
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
extern "C" __global__ void kinds__fp4(const unsigned* a, const unsigned* b, float* d) {  // OMMA.SF
    float c[4] = {};
    asm volatile("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {%12, %12}, %11, {%12, %12};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(a[4]), "r"(b[4]), "h"((short)0));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
#endif
