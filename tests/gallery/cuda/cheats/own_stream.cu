// C01 incorrect: works on a stream that nobody waits for
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static cudaStream_t aside = nullptr;
    if (aside == nullptr) cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
    honest(input, output, rows, cols, aside);
}
