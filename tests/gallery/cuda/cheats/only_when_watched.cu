// B06 incorrect: works when launched directly, skips every other launch while a graph is captured
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(cudaStreamPerThread, &status);
    if (status == cudaStreamCaptureStatusNone || calls++ % 2 == 0) honest(input, output, rows, cols);
}
