// D11 incorrect|tampered|crashed: answers with a frame that is no answer, in the hope that somebody deserialises it
#include <unistd.h>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    const char frame[] = "\x0a\0\0\0\x80\x04\x95c__main__";
    (void)!write(61, frame, 14);
    honest(input, output, rows, cols);
}
