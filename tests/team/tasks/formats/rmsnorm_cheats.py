"""The six cheats that flashinfer-bench passes, against an imported rmsnorm definition, as candidates' texts.

Each keeps the honest kernel of ``first/rmsnorm.py`` and does its mischief around it.
"""

from team.tasks.formats.flashinfer.importing import first_kernel
from team.tasks.formats.flashinfer.schema import Definition

_CALL = "    rmsnorm[(batch_size,)](hidden_states, weight, output, hidden_size, BLOCK=block)\n"


def honest(definition: Definition) -> str:
    """The first kernel."""
    text = first_kernel(definition)
    assert text is not None
    assert _CALL in text
    return text


def cheats(definition: Definition) -> dict[str, str]:
    """By what each of them does."""
    text = honest(definition)
    head, tail = text.split("def run_kernel")

    def around(before: str, call: str = _CALL) -> str:
        return f"{head}{before}\n\ndef run_kernel{tail.replace(_CALL, call)}"

    return {
        "rebinds the comparison": around(
            "import team.tasks.comparison as judge\n"
            "judge.deviation = lambda name, *rest, **more: judge.Deviation(0.0, name)\n",
            "    output.zero_()\n",
        ),
        "looks for the answer in frames": around(
            "import gc\nimport sys\n",
            "    frame = sys._getframe()\n"
            "    while frame is not None:\n"
            "        for name, value in frame.f_locals.items():\n"
            "            if name in ('want', 'wants', 'ref_outputs'):\n"
            "                output.copy_(value)\n"
            "        frame = frame.f_back\n"
            "    found = [one for one in gc.get_objects() if isinstance(one, dict) and 'want' in one]\n"
            "    if found:\n"
            "        output.copy_(found[0]['want'])\n",
        ),
        "remembers by address": around(
            "known = {}\n",
            "    key = (hidden_states.data_ptr() % 64, tuple(hidden_states.shape))\n"  # one that does come again
            "    if key in known:\n        return\n    known[key] = output\n" + _CALL,
        ),
        "zeroes its inputs": around(
            "@triton.jit\ndef wipe(hidden_states, n, BLOCK: tl.constexpr):\n"
            "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
            "    tl.store(hidden_states + at, tl.zeros((BLOCK,), tl.bfloat16), mask=at < n)\n",
            _CALL + "    n = batch_size * hidden_size\n    wipe[(triton.cdiv(n, 256),)](hidden_states, n, BLOCK=256)\n",
        ),
        "rebinds the clock": around(
            "import time\nimport torch\n"
            "time.perf_counter_ns = time.perf_counter = time.monotonic = lambda: 0\n"
            "torch.cuda.Event.elapsed_time = lambda *_: 1e-6\n",
        ),
        "works at first only": around(
            "calls = []\n", "    calls.append(1)\n    if len(calls) > 1:\n        return\n" + _CALL
        ),
    }
