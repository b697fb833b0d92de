"""Device functions for products of values split into two parts: the split, and the instructions."""

SPLIT = """\
// The two TF32 parts of a value: its first bits, and the rest, of which the tensor core reads the first bits.
__device__ __forceinline__ void split(float value, unsigned& high, unsigned& low) {
    high = __float_as_uint(value) & 0xffffe000u;
    low = __float_as_uint(value - __uint_as_float(high));
}
"""

_ADDS = """\
// {what}
__device__ __forceinline__ void {name}(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {{
    asm("mma.sync.aligned.{instruction} "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}
"""

_BEGINS = """\
// {what}
__device__ __forceinline__ void begin(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {{
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
    asm("mma.sync.aligned.{instruction} "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%10, %10, %10, %10}};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}}
"""

_TF32 = "m16n8k8.row.col.f32.tf32.tf32.f32"
_BFLOAT16 = "m16n8k16.row.col.f32.bf16.bf16.f32"

MULTIPLY = _ADDS.format(
    name="multiply",
    instruction=_TF32,
    what="Adds the product of 16 x 8 and 8 x 8 TF32 values to 16 x 8 sums, four of which a thread holds.",
)
BEGIN = _BEGINS.format(
    instruction=_TF32, what="The same product alone: the instruction adds it to a zero that takes no register."
)

PACKED = """\
// Two values in the precision of bfloat16, which has the range of single.
__device__ __forceinline__ unsigned packed(float first, float second) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
"""

CROSS = _ADDS.format(
    name="cross",
    instruction=_BFLOAT16,
    what="Adds the product of 16 x 16 and 16 x 8 values of bfloat16: both small products of eight terms at once.",
)
BEGIN_CROSS = _BEGINS.format(
    instruction=_BFLOAT16, what="The same products alone: the instruction adds them to a zero that takes no register."
)
