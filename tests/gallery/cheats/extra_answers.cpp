// D09 incorrect|tampered|crashed: does the work, and answers twice
#include <unistd.h>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    honest(input, output, rows, cols);
    const char frame[] = "\x05\0\0\0\x81\xa2ns\x01";
    (void)!write(61, frame, 9);
}
