"""Simplicity is counted from syntax: what a reader must hold in mind, not how it is laid out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.policy import Policy
from protocol.simplicity import is_simpler
from team.judge.simplicity import compared, simplicity

CUDA = """
// a comment
#define TILE 16
#define TWICE(x) ((x) + (x))
#define ONCE
constexpr int K = 8, L = 3;
constexpr float SCALE = 1.0f;
static constexpr std::size_t Q = 3;
template <int T> __global__ void kernel(const float *__restrict__ a, float *b, int n) {
    if (n > TILE && T || !n) {
        for (int i = 0; i < n; ++i) {
            switch (i) {
            case 1: break;
            default:;
            }
        }
    }
    while (n) --n;
    b[0] = n ? a[0] : SCALE;
    if constexpr (T > 1) { b[1] = 2.0f; }
}
extern "C" void solve(const float *a, float *b, int n) { kernel<2><<<1, 32>>>(a, b, n); }
"""

TRITON = '''
"""What this file is for."""
import triton.language as tl

BLOCK = 128


def kernel(x, N: tl.constexpr):  # a comment
    if x and N or x > 3:
        return [i for i in x if i]
    return 1 if x else 2
'''


def test_cuda_branches_and_knobs():
    counted = simplicity({"a.cu": CUDA})
    assert counted["branches"] == 8, "if, &&, ||, for, case, while, ?:, if constexpr; default is no branch"
    assert counted["knobs"] == 5, "TILE, TWICE, K, L, Q; neither ONCE nor the float"


def test_python_branches_and_knobs():
    counted = simplicity({"a.py": TRITON})
    assert counted["branches"] == 6, "if, and, or, comprehension with its if, conditional expression"
    assert counted["knobs"] == 2, "BLOCK and N"


def test_tokens_of_c():
    assert simplicity({"a.cu": "int f(int a) { return a + 1; }"})["tokens"] == 13
    assert simplicity({"a.cpp": "int a = 1;"})["tokens"] == 5


def test_strings_and_macro_bodies():
    assert simplicity({"a.cpp": 'auto s = "many words in one token";'})["tokens"] == 5
    short, long = (simplicity({"a.cu": f"#define F(x) {body}\n"})["tokens"] for body in ("x", "((x) + (x))"))
    assert long - short == 8, "code does not get simpler by moving into a macro"


@given(st.text(alphabet="abc xyz_;{}", max_size=40), st.sampled_from(["\n\n", "    ", "\t", " /* why */ "]))
def test_comments_and_whitespace_are_free(comment, blank):
    plain = "int f(int a) { if (a) return 1; return 2; }"
    dressed = f"// {comment}\n" + plain.replace(" ", f"{blank} ") + f"\n/* {comment} */\n"
    assert simplicity({"a.cpp": plain}) == simplicity({"a.cpp": dressed})
    python = "def f(a):\n    return a\n"
    assert simplicity({"a.py": python}) == simplicity({"a.py": f"# {comment}\n{python}\n\n# {comment}\n"})


def test_files_add_up_and_others_do_not_count():
    both = simplicity({"a.cu": CUDA, "b.py": TRITON, "notes.md": "if if if"})
    alone = [simplicity({"a.cu": CUDA}), simplicity({"b.py": TRITON})]
    assert both == {measure: sum(one[measure] for one in alone) for measure in both}


@pytest.mark.parametrize(("path", "text"), [("a.py", "def ("), ("a.cu", "{{{ ((("), ("a.cpp", ""), ("a.py", "'''")])
def test_what_does_not_parse_still_counts(path, text):
    assert all(count >= 0 for count in simplicity({path: text}).values())


def test_the_examples_are_counted():
    sources = sorted((Path(__file__).parents[3] / "examples").glob("*/*.cpp"))
    assert all(simplicity({str(path): path.read_text()})["tokens"] > 50 for path in sources)


@pytest.mark.parametrize(
    ("tokens", "branches", "knobs", "simpler"),
    [
        ((100, 98), (5, 5), (1, 1), True),
        ((100, 99), (5, 5), (1, 1), False),
        ((100, 90), (5, 6), (1, 1), False),
        ((100, 90), (5, 4), (1, 2), False),
        ((100, 100), (5, 4), (1, 0), False),
        ((0, 0), (0, 0), (0, 0), False),
    ],
)
def test_simpler_means_fewer_tokens_and_nothing_more(tokens, branches, knobs, simpler):
    measured = {"tokens": tokens, "branches": branches, "knobs": knobs}
    assert is_simpler(measured, Policy()) is simpler


def test_unmeasured_is_not_simpler():
    assert not is_simpler({}, Policy())


def test_nothing_is_simpler_than_itself_and_never_both_ways():
    policy = Policy()
    long, short = {"a.cu": CUDA}, {"a.cu": CUDA.replace("while (n) --n;", "")}
    assert not is_simpler(compared(long, long), policy)
    assert is_simpler(compared(long, short), policy)
    assert not is_simpler(compared(short, long), policy)
