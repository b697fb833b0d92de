// Two kernels, the second launched early; it waits for the first before it touches anything.
static __global__ void first_half(const float* input, float* output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i];
    cudaTriggerProgrammaticLaunchCompletion();
}
static __global__ void second_half(float* output, int rows, int cols) {
    cudaGridDependencySynchronize();
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float* y = output + static_cast<size_t>(row) * cols;
    float top = y[0], sum = 0.0f;
    for (int c = 1; c < cols; c++) top = fmaxf(top, y[c]);
    for (int c = 0; c < cols; c++) sum += expf(y[c] - top);
    for (int c = 0; c < cols; c++) y[c] = expf(y[c] - top) / sum;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    first_half<<<(rows * cols + 255) / 256, 256>>>(input, output, rows * cols);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((rows + 63) / 64);
    how.blockDim = dim3(64);
    how.stream = cudaStreamPerThread;
    how.attrs = &early;
    how.numAttrs = 1;
    cudaLaunchKernelEx(&how, second_half, output, rows, cols);
}
