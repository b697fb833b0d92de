"""The parser of C signatures: what it finds, what it refuses, and that it always ends in one or the other."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from team.tasks.signature import Parameter, SignatureError, parse_signature

BODY = "{ }"


def solve(parameters: str) -> str:
    return f'extern "C" void solve({parameters}) {BODY}'


@pytest.mark.parametrize(
    ("written", "dtype"),
    [
        ("float *", "float32"),
        ("double*", "float64"),
        ("half*", "float16"),
        ("__half *", "float16"),
        ("__nv_bfloat16*", "bfloat16"),
        ("__nv_fp8_e4m3*", "float8_e4m3fn"),
        ("__nv_fp8_e5m2*", "float8_e5m2"),
        ("int8_t*", "int8"),
        ("signed char*", "int8"),
        ("unsigned char*", "uint8"),
        ("short*", "int16"),
        ("unsigned*", "uint32"),
        ("long*", "int64"),
        ("long long int*", "int64"),
        ("unsigned long long*", "uint64"),
        ("size_t*", "uint64"),
        ("std::int32_t*", "int32"),
        ("bool*", "bool"),
    ],
)
@pytest.mark.parametrize("language", ["cpp", "cuda"])
def test_pointer_types(written: str, dtype: str, language: str) -> None:
    found = parse_signature(solve(f"{written} x"), language)  # pyright: ignore[reportArgumentType]
    assert found.parameters == (Parameter("x", dtype, pointer=True, const=False),)


def test_qualifiers_names_and_stream() -> None:
    source = solve(
        "const float* __restrict__ A, float *__restrict B, float const *c, const int N, float eps, cudaStream_t s"
    )
    a, b, c, n, eps, stream = parse_signature(source, "cuda").parameters
    assert (a.name, a.const, b.const, c.const) == ("A", True, False, True)
    assert (n.dtype, n.pointer, n.is_integer, eps.is_real) == ("int32", False, True, True)
    assert stream.is_stream
    assert not stream.is_integer


def test_const_pointer_to_data_that_may_be_written_is_an_output() -> None:
    assert not parse_signature(solve("float* const y")).parameters[0].const


def test_only_the_live_definition_counts() -> None:
    source = """
    // extern "C" void solve(double* wrong) { }
    /* extern "C" void solve(double* wrong) { } */
    extern "C" void solve(float* y, int n);
    #if 0
    extern "C" void solve(double* wrong) { }
    #endif
    void solve(double* not_c, int n, int m) { }
    const char* text = "extern \\"C\\" void solve(double* wrong) { }";
    extern "C" {
    void other(int* x) { }
    void solve(float* y, /* how many */ int n) { }
    }
    """
    assert [p.name for p in parse_signature(source).parameters] == ["y", "n"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("void solve(float* y) { }", "no definition"),
        ('extern "C" void solve(float* y);', "no definition"),
        (solve("float** y"), "float** y"),
        (solve("float& y"), "float& y"),
        (solve("float y[4]"), "float y[4]"),
        (solve("float* y, Config c"), "Config"),
        (solve("float* y, __half eps"), "__half eps"),
        (solve("float* y, int"), "no name"),
        (solve("float*"), "no name"),
        (solve("float* y, int n = 3"), "int n = 3"),
        (solve("float* y, ..."), "..."),
        (solve("float* y, int y"), "'y'"),
        (solve("const float* x, int n"), "no output"),
        (solve("void"), "no output"),
        ('extern "C" int solve(float* y) { return 0; }', "return void"),
        (solve("float* y") + solve("float* y, int n"), "more than once"),
    ],
)
def test_refusals_name_the_thing_and_the_remedy(source: str, names: str) -> None:
    with pytest.raises(SignatureError) as caught:
        parse_signature(source)
    assert names in caught.value.what
    assert caught.value.remedy


def test_same_call_ignores_names_but_not_types() -> None:
    one = parse_signature(solve("const float* a, float* b, int n"))
    assert one.same_call(parse_signature(solve("const float* x, float* y, int m")))
    assert not one.same_call(parse_signature(solve("const float* a, float* b, long n")))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet='float*&[]()<>,;{}/ "Cexternvoidsolve#if0\n', max_size=80))
def test_any_text_ends_in_a_signature_or_a_sentence(noise: str) -> None:
    with contextlib.suppress(SignatureError):
        assert parse_signature(f'extern "C" void solve({noise}').pointers
