"""Index polynomials against Python's own arithmetic, and parsing that loses nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roles.techniques.cpp.affine import polynomial, stride
from roles.techniques.cpp.syntax import Edit, Source, field, of_type, parse

NAMES = ("i", "j", "N", "K")
EXPRESSIONS = st.recursive(
    st.sampled_from(NAMES) | st.integers(0, 99).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries({name: st.integers(-9, 9) for name in NAMES})


def index_of(expression: str):
    source = parse(f"void f(int i, int j, int N, int K, float* a) {{ a[{expression}] = 0; }}")
    access = next(of_type(source.root, "subscript_expression"))
    return polynomial(field(access, "indices").named_children[0])


def value_of(poly, names) -> int:
    total = 0
    for term, factor in poly.items():
        for name in term:
            factor *= names[name]
        total += factor
    return total


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, VALUES)
def test_polynomial_equals_the_expression(expression: str, names: dict[str, int]) -> None:
    poly = index_of(expression)
    assert poly is not None
    assert value_of(poly, names) == eval(expression, {}, dict(names))


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, VALUES)
def test_stride_is_the_difference(expression: str, names: dict[str, int]) -> None:
    poly = index_of(expression)
    step = stride(poly, "i") if poly is not None else None
    if poly is not None and step is not None:
        moved = {**names, "i": names["i"] + 1}
        assert value_of(poly, moved) - value_of(poly, names) == value_of(step, names)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=80), st.text(max_size=10))
def test_replacing_a_span_is_exact(text: str, new: str) -> None:
    source = Source(text)
    middle = len(text) // 2
    at = len(text[:middle].encode(errors="surrogatepass"))
    assert source.replace(Edit(at, at, new)) == text[:middle] + new + text[middle:]


def test_locals_that_never_change_are_followed() -> None:
    source = parse(
        "void f(int i, int n, float* a) { const int row = i * n; for (int c = 0; c < n; c++) a[row + c] = 0; }"
    )
    access = next(of_type(source.root, "subscript_expression"))
    assert polynomial(field(access, "indices").named_children[0]) == {("i", "n"): 1, ("c",): 1}
