// A candidate for the CPU in a process of its own, timed call by call; perf watches it from outside.
//
// usage: standalone SHIM [LIBRARY:...]KERNEL PLAN SECONDS MILLISECONDS READABLE:...
//   one call to warm up, then calls for MILLISECONDS, at least three; the last line on standard output is
//   "median_ns NUMBER". The sandbox is entered before the kernel is loaded; it ends itself after SECONDS.
//   exit status 0: timed; 4: something cannot be loaded
#include <chrono>
#include <unistd.h>

#include "standalone.h"

int main(int count, char** arguments) {
    if (count != 7) return 64;
    alarm(static_cast<unsigned>(std::atoi(arguments[4])));
    auto loop = reinterpret_cast<standalone::Loop>(standalone::find(arguments[1], "kernelteam_loop"));
    const standalone::Plan plan(arguments[3]);
    standalone::confine(arguments[6], "", "");
    void* entry = standalone::find(arguments[2], "solve");
    std::vector<uint64_t> row(plan.columns());
    const char* contents = plan.contents();
    for (uint64_t column = 0; column < row.size(); column++) {
        const uint64_t kind = plan.kind(column), value = plan.value(column);
        row[column] = value;
        if (kind != 1 && kind != 2) continue;
        void* buffer = std::aligned_alloc(4096, (value + 4095) / 4096 * 4096);
        if (buffer == nullptr) return 4;
        std::memset(buffer, 0, value);
        row[column] = reinterpret_cast<uint64_t>(buffer);
        if (kind != 2) continue;
        std::memcpy(buffer, contents, value);
        contents += value;
    }
    loop(entry, row.data(), 1);
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(std::atoi(arguments[5]));
    std::vector<double> taken;
    while (taken.size() < 3 || Clock::now() < until) {
        const auto start = Clock::now();
        loop(entry, row.data(), 1);
        taken.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
    std::nth_element(taken.begin(), taken.begin() + static_cast<long>(taken.size() / 2), taken.end());
    std::printf("median_ns %.1f\n", taken[taken.size() / 2]);
    return 0;
}
