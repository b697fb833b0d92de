// C12 timeout: leaves a kernel running on a stream of its own
static __global__ void linger(volatile float* output) {
    while (output[0] != 12345.0f) {
    }
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static cudaStream_t aside = nullptr;
    honest(input, output, rows, cols);
    if (aside != nullptr) return;
    cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
    linger<<<1, 1, 0, aside>>>(output);
}
