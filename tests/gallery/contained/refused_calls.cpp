// tries to fork, to open a socket and to kill its parent; every attempt is refused and the rest is honest work
#include <csignal>
#include <cstdlib>
#include <sys/socket.h>
#include <unistd.h>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    if (fork() >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 || kill(getppid(), SIGTERM) == 0) std::abort();
    honest(input, output, rows, cols);
}
