// B06 incorrect: works on the first calls only
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    if (calls++ < 4) honest(input, output, rows, cols);
}
