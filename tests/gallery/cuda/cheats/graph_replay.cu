// B10 incorrect: captures its first call and replays that graph, with the first call's addresses, for ever
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static cudaGraphExec_t kept = nullptr;
    static cudaStream_t aside = nullptr;
    if (kept == nullptr) {
        cudaGraph_t graph = nullptr;
        cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking);
        cudaStreamBeginCapture(aside, cudaStreamCaptureModeRelaxed);
        honest(input, output, rows, cols, aside);
        cudaStreamEndCapture(aside, &graph);
        cudaGraphInstantiate(&kept, graph, 0);
    }
    cudaGraphLaunch(kept, cudaStreamPerThread);
}
