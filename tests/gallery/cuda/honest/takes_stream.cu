// Takes the stream that it is given.
extern "C" void solve(const float* input, float* output, int rows, int cols, cudaStream_t stream) {
    honest(input, output, rows, cols, stream);
}
