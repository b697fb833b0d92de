// B06 incorrect: honest until the check is likely over
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    if (calls++ < 13) honest(input, output, rows, cols);
}
