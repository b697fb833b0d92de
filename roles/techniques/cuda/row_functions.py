"""Device functions that kernels with a group of threads a row need: where a value lives, moving it, combining it."""

COLUMN = """\
// Column of a thread's item: four neighbours a thread where rows are aligned, neighbouring threads otherwise.
template <int LANES, bool ALIGNED>
__device__ __forceinline__ int column(int item, int lane) {
    return ALIGNED ? (item / 4 * LANES + lane) * 4 + item % 4 : item * LANES + lane;
}
"""

LOAD = """\
template <int LANES, bool ALIGNED, int ITEMS>
__device__ __forceinline__ void load_row(float (&items)[ITEMS], const float* from, int lane, int cols) {
#pragma unroll
    for (int item = 0; item < ITEMS; item += ALIGNED ? 4 : 1) {
        const int c = column<LANES, ALIGNED>(item, lane);
        if (c < cols) {
            if (ALIGNED) {
                *reinterpret_cast<float4*>(&items[item]) = *reinterpret_cast<const float4*>(from + c);
            } else {
                items[item] = from[c];
            }
        }
    }
}
"""

STORE = """\
template <int LANES, bool ALIGNED, int ITEMS>
__device__ __forceinline__ void store_row(float* to, const float (&items)[ITEMS], int lane, int cols) {
#pragma unroll
    for (int item = 0; item < ITEMS; item += ALIGNED ? 4 : 1) {
        const int c = column<LANES, ALIGNED>(item, lane);
        if (c < cols) {
            if (ALIGNED) {
                *reinterpret_cast<float4*>(to + c) = *reinterpret_cast<const float4*>(&items[item]);
            } else {
                to[c] = items[item];
            }
        }
    }
}
"""

_COMBINED = {"sum": "a + b", "max": "max(a, b)", "min": "min(a, b)"}


def combine(kind: str) -> str:
    """The function ``combined_<kind>``: all lanes of a row get the combined value."""
    applied = _COMBINED[kind]
    step = applied.replace("a", "value", 1) if kind == "sum" else applied.replace("(a", "(value")

    def with_other(offset: str) -> str:
        return (
            step.replace("b", f"__shfl_xor_sync(0xffffffffu, value, {offset})", 1)
            if kind == "sum"
            else (step.replace(", b)", f", __shfl_xor_sync(0xffffffffu, value, {offset}))"))
        )

    return f"""\
// All lanes of a row get the {kind} of their values: shuffles inside a warp, shared memory between warps.
template <int LANES, typename T>
__device__ __forceinline__ T combined_{kind}(T value) {{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {{
        value = {with_other("offset")};
    }}
    if (LANES > 32) {{
        constexpr int WARPS = LANES > 32 ? LANES / 32 : 1;
        __shared__ T parts[WARPS];
        __syncthreads();  // what was combined before has been read
        if (threadIdx.x % 32 == 0) {{
            parts[threadIdx.x / 32] = value;
        }}
        __syncthreads();
        value = parts[threadIdx.x % WARPS];
#pragma unroll
        for (int offset = WARPS / 2; offset > 0; offset /= 2) {{
            value = {with_other("offset")};
        }}
    }}
    return value;
}}
"""
