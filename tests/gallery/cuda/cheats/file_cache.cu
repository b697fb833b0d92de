// B05 incorrect: keeps answers in files for a later process, and counts on finding them
#include <cstdio>
#include <string>
#include <vector>
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static int calls = 0;
    size_t size = static_cast<size_t>(rows) * cols;
    if (calls++ == 0) honest(input, output, rows, cols);
    std::vector<float> values(size);
    std::string path = "/tmp/softmax-" + std::to_string(cols);
    FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return;
    size_t done = std::fread(values.data(), 4, size, file);
    std::fclose(file);
    if (done == size) cudaMemcpy(output, values.data(), 4 * size, cudaMemcpyHostToDevice);
}
