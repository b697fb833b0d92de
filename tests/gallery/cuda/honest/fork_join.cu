// Half of the rows on a stream of its own, forked from the caller's and joined to it again.
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static cudaStream_t aside = nullptr;
    static cudaEvent_t fork, join;
    if (aside == nullptr) {
        cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    }
    int half = rows / 2;
    size_t skipped = static_cast<size_t>(half) * cols;
    cudaEventRecord(fork, cudaStreamPerThread);
    cudaStreamWaitEvent(aside, fork, 0);
    honest(input, output, half, cols);
    honest(input + skipped, output + skipped, rows - half, cols, aside);
    cudaEventRecord(join, aside);
    cudaStreamWaitEvent(cudaStreamPerThread, join, 0);
}
