// Asks whether the stream has caught up, which breaks a capture: timed behind the gate, on record.
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    cudaStreamQuery(cudaStreamPerThread);
}
