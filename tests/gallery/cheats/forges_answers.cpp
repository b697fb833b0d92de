// D09 incorrect|tampered|crashed: finds the protocol's descriptor and answers in the runner's place
#include <cstring>
#include <unistd.h>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    const char frame[] = "\x05\0\0\0\x81\xa2ns\x01";
    for (int fd = 3; fd < 64; fd++) (void)!write(fd, frame, 9);
}
