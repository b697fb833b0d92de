// D25 crashed: takes all memory of the card, then works on what it did not get
static __global__ void touch(float* scratch) { scratch[threadIdx.x] = 1.0f; }
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    float* scratch = nullptr;
    for (size_t size = size_t{1} << 36; size >= 1 << 20; size /= 2)
        while (cudaMalloc(&scratch, size) == cudaSuccess) {}
    cudaGetLastError();
    honest(input, output, rows, cols);
    touch<<<1, 32>>>(reinterpret_cast<float*>(16));
}
