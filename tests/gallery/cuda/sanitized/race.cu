// racecheck: threads read what others write in shared memory, with no barrier between
static __global__ void racing(const float* input, float* output, int rows, int cols) {
    __shared__ float part[128];
    part[threadIdx.x] = input[threadIdx.x];
    if (part[127 - threadIdx.x] > 1e30f) output[0] = part[127 - threadIdx.x];
}
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    racing<<<1, 128>>>(input, output, rows, cols);
}
