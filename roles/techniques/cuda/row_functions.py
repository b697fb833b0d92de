"""Device functions that kernels with a group of threads a row need: where a value lives, moving it, combining it."""

from roles.techniques.cuda.cache_hints import loaded, stored

COLUMN = """\
// Column of a thread's item: V neighbours a thread where rows are aligned, neighbouring threads otherwise.
template <int LANES, int V>
__device__ __forceinline__ int column(int item, int lane) {
    return (item / V * LANES + lane) * V + item % V;
}
"""


def load_row(load: str) -> str:
    """The function that fills a thread's items of a row. ``load`` is ``plain`` or the intrinsic to load with."""
    return f"""\
template <int LANES, int V, int ITEMS>
__device__ __forceinline__ void load_row(float (&items)[ITEMS], const float* from, int lane, int cols) {{
#pragma unroll
    for (int item = 0; item < ITEMS; item += V) {{
        const int c = column<LANES, V>(item, lane);
        if (c < cols) {{
            if constexpr (V == 4) {{
                *reinterpret_cast<float4*>(&items[item]) = {loaded(load, "float4", "from + c")};
            }} else if constexpr (V == 2) {{
                *reinterpret_cast<float2*>(&items[item]) = {loaded(load, "float2", "from + c")};
            }} else {{
                items[item] = {loaded(load, "float", "from + c")};
            }}
        }}
    }}
}}
"""


def store_row(store: str) -> str:
    """The function that writes a thread's items of a row. ``store`` is ``plain`` or the intrinsic to store with."""
    return f"""\
template <int LANES, int V, int ITEMS>
__device__ __forceinline__ void store_row(float* to, const float (&items)[ITEMS], int lane, int cols) {{
#pragma unroll
    for (int item = 0; item < ITEMS; item += V) {{
        const int c = column<LANES, V>(item, lane);
        if (c < cols) {{
            if constexpr (V == 4) {{
                {stored(store, "float4", "to + c", "&items[item]")}
            }} else if constexpr (V == 2) {{
                {stored(store, "float2", "to + c", "&items[item]")}
            }} else {{
                {stored(store, "float", "to + c", "&items[item]")}
            }}
        }}
    }}
}}
"""


def load_shifted_row(load: str) -> str:
    """``load_row`` with a choice: a ``SHIFTED`` row begins ``shift`` items after the start of a vector.

    Its first and last vectors are then taken item by item; all of them are where the array is not so shifted itself,
    which ``TOGETHER`` says.
    """
    vector = f"*reinterpret_cast<float4*>(&items[item]) = {loaded(load, 'float4', 'from + c')};"
    return _shifted("load_row(float (&items)[ITEMS], const float* from", vector, "items[item + part] = from[c + part];")


def store_shifted_row(store: str) -> str:
    """``store_row`` with the same choice."""
    vector = stored(store, "float4", "to + c", "&items[item]")
    return _shifted("store_row(float* to, const float (&items)[ITEMS]", vector, "to[c + part] = items[item + part];")


def _shifted(head: str, vector: str, one: str) -> str:
    plain = one.replace("item + part", "item").replace("c + part", "c")
    return f"""\
template <int LANES, int V, bool SHIFTED, bool TOGETHER, int ITEMS>
__device__ __forceinline__ void {head}, int lane, int cols, int shift) {{
#pragma unroll
    for (int item = 0; item < ITEMS; item += V) {{
        const int c = column<LANES, V>(item, lane) - shift;
        if constexpr (V == 1) {{
            if (c < cols) {{
                {plain}
            }}
        }} else if (TOGETHER && (!SHIFTED || c >= 0) && c + V <= cols) {{
            {vector}
        }} else if (SHIFTED) {{
#pragma unroll
            for (int part = 0; part < V; part++) {{
                if (c + part >= 0 && c + part < cols) {{
                    {one}
                }}
            }}
        }}
    }}
}}
"""


_COMBINED = {"sum": "a + b", "max": "max(a, b)", "min": "min(a, b)"}


def combine(kind: str, again: bool = True) -> str:
    """The function ``combined_<kind>``: all lanes of a row get the combined value.

    Calls with different ``SLOT`` share no memory. ``again`` says that a call may come again before all threads have
    passed the barrier of another one, so that it must wait until what it combined before has been read.
    """
    waited = "        __syncthreads();  // what was combined before has been read\n" if again else ""
    applied = _COMBINED[kind]
    step = applied.replace("a", "value", 1) if kind == "sum" else applied.replace("(a", "(value")

    def with_other(offset: str, lanes: str = "0xffffffffu") -> str:
        other = f"__shfl_xor_sync({lanes}, value, {offset})"
        return step.replace("b", other, 1) if kind == "sum" else step.replace(", b)", f", {other})")

    return f"""\
// All lanes of a row get the {kind} of their values: shuffles inside a warp, shared memory between warps.
template <int LANES, int SLOT = 0, typename T>
__device__ __forceinline__ T combined_{kind}(T value) {{
    constexpr int WIDTH = LANES < 32 ? LANES : 32;
    // Lanes of this row alone: the others of its warp may have no row left.
    const unsigned together = LANES < 32 ? (0xffffffffu >> (32 - WIDTH)) << (threadIdx.y * LANES % 32) : 0xffffffffu;
#pragma unroll
    for (int offset = WIDTH / 2; offset > 0; offset /= 2) {{
        value = {with_other("offset", "together")};
    }}
    if (LANES > 32) {{
        constexpr int WARPS = LANES > 32 ? LANES / 32 : 1;
        __shared__ T parts[WARPS];
{waited}        if (threadIdx.x % 32 == 0) {{
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
