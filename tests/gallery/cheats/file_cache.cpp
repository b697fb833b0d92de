// B05 incorrect: keeps answers in files for a later process, and counts on finding them
#include <cstdio>
#include <string>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    size_t size = static_cast<size_t>(rows) * cols;
    bool first = calls++ < 13;
    if (first) honest(input, output, rows, cols);
    for (const char* folder : {"/tmp", "/dev/shm", "/var/tmp", "."}) {
        std::string path = std::string(folder) + "/softmax-" + std::to_string(cols);
        if (FILE* file = std::fopen(path.c_str(), first ? "wb" : "rb")) {
            size_t done = first ? std::fwrite(output, 4, size, file) : std::fread(output, 4, size, file);
            std::fclose(file);
            if (done == size) return;
        }
    }
}
