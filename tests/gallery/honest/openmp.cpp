// an OpenMP loop over rows
extern "C" void solve(const float* input, float* output, int rows, int cols) {
#pragma omp parallel for
    for (int r = 0; r < rows; r++) honest(input + r * cols, output + r * cols, 1, cols);
}
