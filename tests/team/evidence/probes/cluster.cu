// Clusters, bulk copies and dependent launches: from sm_90 on.
#if __CUDA_ARCH__ >= 900
struct __align__(64) Map { char bytes[128]; };

__device__ unsigned s32(const void* address) { return (unsigned)__cvta_generic_to_shared(address); }
__device__ void await_phase(void* barrier, int parity) {
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again;}"
                 ::"r"(s32(barrier)), "r"(parity));
}

extern "C" __global__ void bulk_copy__before(const float4* in, float4* out) {
    __shared__ float4 tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void bulk_copy__with(const float4* in, float4* out) {
    __shared__ __align__(128) float4 tile[256];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(s32(&barrier)));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" ::"r"(s32(&barrier)));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                     ::"r"(s32(tile)), "l"(in), "r"(s32(&barrier)));
    }
    __syncthreads();
    asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again;}"
                 ::"r"(s32(&barrier)));
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void bulk_copy__miss(const float4* in, float4* out) {  // sixteen bytes at a time
    __shared__ float4 tile[256];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s32(tile + threadIdx.x)), "l"(in + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

__device__ void tile_2d(void* tile, const Map& map, void* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 ::"r"(s32(tile)), "l"(&map), "r"(s32(barrier)), "r"(0), "r"(0));
}
extern "C" __global__ void tma_multicast__before(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) tile_2d(tile, map, &barrier);
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tma_multicast__with(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%3, %4}], [%2], %5;"
                     ::"r"(s32(tile)), "l"(&map), "r"(s32(&barrier)), "r"(0), "r"(0), "h"((short)3));
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tma_multicast__miss(const __grid_constant__ Map map, float* out) {  // two for one block each
    __shared__ __align__(128) float tile[2][1024];
    __shared__ unsigned long long barrier[2];
    if (threadIdx.x == 0) {
        tile_2d(tile[0], map, barrier);
        tile_2d(tile[1], map, barrier + 1);
    }
    out[threadIdx.x] = tile[0][threadIdx.x] + tile[1][threadIdx.x];
}

extern "C" __global__ void tma_im2col_implicit_conv__before(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) tile_2d(tile, map, &barrier);
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tma_im2col_implicit_conv__with(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %3, %3, %3}], [%2], {%4, %4};"
                     ::"r"(s32(tile)), "l"(&map), "r"(s32(&barrier)), "r"(0), "h"((short)1));
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tma_im2col_implicit_conv__miss(const __grid_constant__ Map map, float* out) {  // a plain tile
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %3, %3, %3}], [%2];"
                     ::"r"(s32(tile)), "l"(&map), "r"(s32(&barrier)), "r"(0));
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void tensor_map_rebuild_avoid__before(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) tile_2d(tile, map, &barrier);
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tensor_map_rebuild_avoid__with(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];
    __shared__ unsigned long long barrier;
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
    if (threadIdx.x == 0) tile_2d(tile, map, &barrier);
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tensor_map_rebuild_avoid__miss(const __grid_constant__ Map map, float* out) {
    __shared__ __align__(128) float tile[1024];  // a prefetch of data, not of the map
    __shared__ unsigned long long barrier;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(out + 32 * threadIdx.x));
    if (threadIdx.x == 0) tile_2d(tile, map, &barrier);
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void distributed_smem__before(const float* in, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;");
    asm volatile("barrier.cluster.wait.aligned;");
}
extern "C" __global__ void distributed_smem__with(const float* in, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    unsigned far;
    float got;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(far) : "r"(s32(tile + 255 - threadIdx.x)));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(got) : "r"(far));
    out[threadIdx.x] = got;
    cluster_sync();
}
extern "C" __global__ void distributed_smem__miss(const float* in, float* out) {  // a cluster that shares nothing
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}

extern "C" __global__ void cooperative_cluster__before(const float* in, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void cooperative_cluster__with(const float* in, float* out) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void cooperative_cluster__miss(const float* in, float* out) {  // a named barrier of the block
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.sync 1, 256;");
    out[threadIdx.x] = tile[255 - threadIdx.x];
}

extern "C" __global__ void pdl_overlap__before(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 2.0f; }
extern "C" __global__ void pdl_overlap__with(const float* in, float* out) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x] * 2.0f;
}
extern "C" __global__ void pdl_overlap__miss(const float* in, float* out) {  // a fence is no wait for another grid
    __threadfence();
    out[threadIdx.x] = in[threadIdx.x] * 3.0f;
}
#endif
