// A13 incorrect: whole vectors of four only
static __global__ void spoil(float* output, int cols) {
    int full = cols / 4 * 4;
    for (int c = full; c < cols; c++) output[static_cast<size_t>(blockIdx.x) * cols + c] = 0.0f;
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    spoil<<<rows, 1>>>(output, cols);
}
