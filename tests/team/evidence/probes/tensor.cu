// Matrix instructions of one warp, conversions, and the integer dot product: from sm_80 on.

extern "C" __global__ void tensor_core__before(const float* a, const float* b, float* d, int k) {
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[threadIdx.y * k + i] * b[i * 16 + threadIdx.x];
    d[threadIdx.y * 16 + threadIdx.x] = sum;
}
extern "C" __global__ void tensor_core__with(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void tensor_core__miss(const float* a, const float* b, float* d, int k) {  // HFMA2 makes constants
    float sum[4] = {1.0f, 1.5f, 2.0f, 0.25f};
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < 4; ++j) sum[j] += a[threadIdx.y * k + i] * b[i * 64 + threadIdx.x + 16 * j];
    for (int j = 0; j < 4; ++j) d[threadIdx.y * 64 + threadIdx.x + 16 * j] = sum[j];
}

extern "C" __global__ void tf32_emulation_3xtf32_bf16x6__before(const float* a, const float* b, float* d, int k) {
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[threadIdx.y * k + i] * b[i * 16 + threadIdx.x];
    d[threadIdx.y * 16 + threadIdx.x] = sum;
}
__device__ void tf32(float (&c)[4], const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ void tf32_emulation_3xtf32_bf16x6__with(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    tf32(c, a, b + 2);
    tf32(c, a + 4, b);
    tf32(c, a, b);
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void tf32_emulation_3xtf32_bf16x6__miss(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};  // one product in TF32 is no emulation of a wider one
    tf32(c, a, b);
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}

extern "C" __global__ void structured_sparsity_2to4__before(const unsigned* a, const unsigned* b, float* d) {
    float c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void structured_sparsity_2to4__with(const unsigned* a, const unsigned* b, const unsigned* e, float* d) {
    float c[4] = {};
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e[0]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void structured_sparsity_2to4__miss(const unsigned* a, const unsigned* b, float* d) {  // dense, twice
    float c[4] = {};
    for (int k = 0; k < 2; ++k)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[4 * k]), "r"(a[4 * k + 1]), "r"(a[4 * k + 2]), "r"(a[4 * k + 3]), "r"(b[2 * k]), "r"(b[2 * k + 1]));
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}

extern "C" __global__ void int8_tensorcore_calibrated__before(const signed char* a, const signed char* b, int* d, int k) {
    int sum = 0;
    for (int i = 0; i < k; ++i) sum += a[threadIdx.y * k + i] * b[i * 16 + threadIdx.x];
    d[threadIdx.y * 16 + threadIdx.x] = sum;
}
extern "C" __global__ void int8_tensorcore_calibrated__with(const unsigned* a, const unsigned* b, int* d) {
    int c[4] = {};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    c[0] = __dp4a((int)a[8], (int)b[8], c[0]);
    for (int i = 0; i < 4; ++i) d[threadIdx.x + 32 * i] = c[i];
}
extern "C" __global__ void int8_tensorcore_calibrated__miss(const signed char* a, const signed char* b, int* d, int k) {
    int sum[4] = {};  // eight bits, multiplied one by one
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < 4; ++j) sum[j] += a[threadIdx.y * k + i] * b[i * 64 + threadIdx.x + 16 * j];
    for (int j = 0; j < 4; ++j) d[threadIdx.y * 64 + threadIdx.x + 16 * j] = sum[j];
}

extern "C" __global__ void mixed_precision__before(const float* in, float* out) {
    for (int k = 0; k < 4; ++k) out[threadIdx.x + 32 * k] = in[threadIdx.x + 32 * k] * 1.5f;
}
extern "C" __global__ void mixed_precision__with(const float2* in, unsigned* out) {
    for (int k = 0; k < 4; ++k) {
        float2 two = in[threadIdx.x + 32 * k];
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[threadIdx.x + 32 * k]) : "f"(two.y * 1.5f), "f"(two.x * 1.5f));
    }
}
extern "C" __global__ void mixed_precision__miss(const float* in, float* out) {  // HFMA2 in a kernel of floats
    float sum = 1.0f;
    for (int k = 0; k < 8; ++k) sum = sum * 0.5f + in[threadIdx.x + 32 * k];
    out[threadIdx.x] = sum;
}

// Four-bit weights to halves: by conversion, and by bits pushed into a half's mantissa.
extern "C" __global__ void lop3_bit_manipulation__before(const unsigned* in, float* out) {
    unsigned word = in[threadIdx.x];
    for (int k = 0; k < 8; ++k) out[threadIdx.x * 8 + k] = (float)((word >> (4 * k)) & 15u) - 8.0f;
}
extern "C" __global__ void lop3_bit_manipulation__with(const unsigned* in, unsigned* out) {
    unsigned word = in[threadIdx.x];
    for (int k = 0; k < 4; ++k) {
        unsigned half2 = ((word >> (4 * k)) & 0x000f000fu) | 0x64006400u;
        asm("sub.f16x2 %0, %0, %1;" : "+r"(half2) : "r"(0x64086408u));
        out[threadIdx.x * 4 + k] = half2;
    }
}
extern "C" __global__ void lop3_bit_manipulation__miss(const unsigned* in, float* out) {  // any "and" is a LOP3
    unsigned word = in[threadIdx.x] ^ (in[threadIdx.x + 32] & 0x0f0f0f0fu);
    for (int k = 0; k < 8; ++k) out[threadIdx.x * 8 + k] = (float)((word >> (4 * k)) & 15u) - 8.0f;
}
