// B07 incorrect: does the work of some calls only
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    if (++calls % 3 != 0) honest(input, output, rows, cols);
}
