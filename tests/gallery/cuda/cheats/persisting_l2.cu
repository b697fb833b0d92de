// C10 measured: asks for its slots to stay in the L2; that must not pay
extern "C" void solve(const float* input, float* output, int rows, int cols) {
    static bool asked = false;
    if (!asked) cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
    asked = true;
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = const_cast<float*>(input);
    window.accessPolicyWindow.num_bytes = sizeof(float) * rows * cols;
    window.accessPolicyWindow.hitRatio = 1.0f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(cudaStreamPerThread, cudaStreamAttributeAccessPolicyWindow, &window);
    honest(input, output, rows, cols);
}
