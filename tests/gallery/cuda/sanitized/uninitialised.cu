// initcheck: reads scratch memory that nobody wrote
static __global__ void reads(const float* scratch, float* output) {
    if (scratch[threadIdx.x] == 12345.0f) output[0] = scratch[threadIdx.x];
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    float* scratch = nullptr;
    cudaMalloc(&scratch, 128 * sizeof(float));
    honest(input, output, rows, cols);
    reads<<<1, 128>>>(scratch, output);
    cudaDeviceSynchronize();
    cudaFree(scratch);
}
