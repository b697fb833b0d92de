"""Device functions for products of values split into two TF32 parts: the split, and the instruction."""

SPLIT = """\
// The two TF32 parts of a value: its first bits, and the rest, of which the tensor core reads the first bits.
__device__ __forceinline__ void split(float value, unsigned& high, unsigned& low) {
    high = __float_as_uint(value) & 0xffffe000u;
    low = __float_as_uint(value - __uint_as_float(high));
}
"""

MULTIPLY = """\
// Adds the product of 16 x 8 and 8 x 8 TF32 values to 16 x 8 sums, four of which a thread holds.
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""

BEGIN = """\
// The same product alone: the instruction adds it to a zero that takes no register.
__device__ __forceinline__ void begin(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
"""
