// Reads and writes every element once in 16-byte pieces, with enough of them in flight: DRAM is the limit.
__global__ void doubled(const float4* x, float4* y, int pieces) {
    int stride = gridDim.x * blockDim.x;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < pieces; at += stride) {
        float4 piece = __ldcs(x + at);
        __stcs(y + at, make_float4(2.0f * piece.x, 2.0f * piece.y, 2.0f * piece.z, 2.0f * piece.w));
    }
}

extern "C" void solve(const float* x, float* y, int n) {
    doubled<<<132 * 16, 512>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y), n / 4);
}
