"""The screen of Python candidates: Triton kernels in the usual style pass; each trick is named with its line."""

import pytest

from team.judge.screen.python import screen_python

SOFTMAX = '''\
"""Row softmax."""
from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=4) for b in (256, 512)], key=["cols"])
@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    value = libdevice.exp(value - tl.max(value, axis=0))
    total = value.sum(0)
    tl.store(y + row * cols + at, value / total, mask=at < cols)


def setup(rows, cols, seed):
    return {"input": torch.empty((rows, cols), device="cuda", dtype=torch.float32)}


def run_kernel(input, output, rows, cols):
    scratch = torch.empty_like(output)
    block = triton.next_power_of_2(cols)
    grid = lambda meta: (rows * math.ceil(triton.cdiv(cols, meta["BLOCK"]) / cols),)
    with torch.cuda.device(input.device):
        softmax[grid](input.contiguous().view(-1), output, cols, BLOCK=block)
    return output.reshape(rows, cols), scratch.stride(0)


if __name__ == "__main__":
    print(setup(2, 3, 0))
'''
TRICKS = {
    "import os": "imports os",
    "import torch.utils.cpp_extension": "imports torch.utils.cpp_extension",
    "from torch import matmul": "imports torch.matmul",
    "from torch import *": "imports everything of torch",
    "from . import reference": "beside the kernel's own",
    "import triton.testing": "imports triton.testing",
    "import numpy": "imports numpy",
    "y = torch.softmax(x, 0)": "uses torch.softmax",
    "y = torch.nn.functional.softmax(x, 0)": "uses torch.nn.functional.softmax",
    "y = torch.ops.aten.mm(a, b)": "reaches for torch.ops.aten.mm",
    "y = a @ b": "multiplies matrices outside a kernel",
    "a @= b": "multiplies matrices outside a kernel",
    "y = x.softmax(0)": "the library's softmax",
    "y.copy_(x)": "the library's copy_",
    "t = torch\ny = t.mm(a, b)": "passes the module torch about",
    "f = getattr(x, 'm' + 'm')": "uses getattr",
    "f = torch.__dict__['mm']": "reaches for torch.__dict__",
    "f = ().__class__.__base__.__subclasses__()": "__class__",
    "eval('1')": "uses eval",
    "exec('1')": "uses exec",
    "open('/tmp/x')": "uses open",
    "__import__('os')": "uses __import__",
    "f = print.__self__": "reaches for print.__self__",
    "f = tl.core.builtins.exec": "reaches for triton.language.core.builtins.exec",
    "torch.cuda.Event.elapsed_time = lambda *a: 0.0": "uses torch.cuda.Event.elapsed_time",
    "torch.cuda.synchronize = lambda: None": "uses torch.cuda.synchronize",
    "triton.testing.do_bench = None": "uses triton.testing.do_bench",
    "s = torch.cuda.Stream()": "uses torch.cuda.Stream",
    "torch.manual_seed(0)": "uses torch.manual_seed",
    "torch.backends.cuda.matmul.allow_tf32 = False": "uses torch.backends.cuda.matmul.allow_tf32",
    "g = torch.cuda.CUDAGraph()": "uses torch.cuda.CUDAGraph",
    "f = torch.compile(f)": "torch.compile",
    "class Lazy(torch.Tensor):\n    def __torch_function__(self): pass": "defines __torch_function__",
    "class Odd(metaclass=M): pass": "uses a metaclass",
    "def f():\n    return (yield).gi_frame": "gi_frame",
}
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


def test_a_kernel_in_the_usual_style_passes() -> None:
    assert screen_python(SOFTMAX) == ""


@pytest.mark.parametrize("trick", TRICKS, ids=list(TRICKS))
def test_a_trick_is_named_with_its_line(trick: str) -> None:
    clause = screen_python(HEAD + trick + "\n")
    assert TRICKS[trick] in clause
    assert clause.startswith(("line 4 ", "line 5 "))


def test_tricks_are_found_wherever_they_stand() -> None:
    nested = HEAD + "def f():\n    class A:\n        g = lambda self: [eval(x) for x in self]\n"
    assert screen_python(nested) == "line 6 uses eval"
    assert "uses open" in screen_python(HEAD + "@triton.jit\ndef k(x):\n    open('f')\n")


def test_inside_a_kernel_the_language_computes() -> None:
    body = "    y = tl.dot(a, b)\n    z = y.sum(0) + tl.exp(y).max(0)\n    return a @ b\n"
    assert screen_python(HEAD + "@triton.jit\ndef k(a, b):\n" + body) == ""
    assert "outside a kernel" in screen_python(HEAD + "def k(a, b):\n" + body)


def test_a_task_may_allow_the_library() -> None:
    text = HEAD + "y = torch.mm(a, b).sum() @ c\n"
    assert screen_python(text)
    assert screen_python(text, ["torch"]) == ""
    assert "imports numpy" in screen_python("import numpy\n", ["torch"])


def test_text_that_hides_behind_an_encoding_is_refused() -> None:
    assert "rot13" in screen_python("# -*- coding: rot13 -*-\nvzcbeg bf\n")
    assert screen_python("# -*- coding: utf-8 -*-\nimport math\n") == ""


def test_text_that_does_not_parse_is_left_to_the_loader() -> None:
    assert screen_python("def f(:\n") == ""
