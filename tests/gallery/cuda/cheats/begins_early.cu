// B07 tampered: lets every call begin before the one before it has ended, by programmatic launches
static __global__ void early(const float* input, float* output, int rows, int cols) {
    cudaTriggerProgrammaticLaunchCompletion();
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* x = input + static_cast<size_t>(row) * cols;
    float* y = output + static_cast<size_t>(row) * cols;
    float top = x[0], sum = 0.0f;
    for (int c = 1; c < cols; c++) top = fmaxf(top, x[c]);
    for (int c = 0; c < cols; c++) sum += expf(x[c] - top);
    for (int c = 0; c < cols; c++) y[c] = expf(x[c] - top) / sum;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    cudaLaunchAttribute early_start = {};
    early_start.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early_start.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3((rows + 63) / 64);
    how.blockDim = dim3(64);
    how.stream = cudaStreamPerThread;
    how.attrs = &early_start;
    how.numAttrs = 1;
    cudaLaunchKernelEx(&how, early, input, output, rows, cols);
}
