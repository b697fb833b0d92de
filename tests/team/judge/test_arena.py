"""The lent buffers: nothing overlaps, every poison is visible, every trespass is seen."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from team.judge.arena import ALIGNMENT, GUARD, Arena, Lease, arrange, noise_bytes, slot_size
from team.tasks.task import Task, load_task

TASK = load_task(Path(__file__).parents[3] / "examples" / "rmsnorm_cpu")


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_slots_never_overlap(launches: int, seed: int) -> None:
    for workload in TASK.workloads:
        layout = arrange(TASK, workload, launches, random.Random(seed))
        spans = []
        for launch in range(launches):
            for place in layout.places:
                start = layout.start + launch * layout.stride + place.offset
                guard = GUARD if place.buffer.is_written else 0
                assert start % ALIGNMENT == 0
                spans.append((start - guard, start + place.size + guard))
        spans.sort()
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        assert spans[0][0] >= 0
        assert spans[-1][1] <= layout.end <= slot_size(TASK, workload) * (launches + 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_poison_is_not_a_number_and_never_the_same(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = (noise_bytes(256, dtype, generator) for _ in range(2))
    assert first.view(dtype).float().isnan().all()
    if dtype.itemsize > 1:
        assert not torch.equal(first, second)


def leased(task: Task) -> tuple[Arena, Lease, dict[str, torch.Tensor], dict[str, int]]:
    workload, dice, generator = task.workloads[-1], random.Random(3), torch.Generator().manual_seed(4)
    layout = arrange(task, workload, 2, dice)
    arena = Arena(layout.end)
    lease = Lease(arena, layout)
    inputs = {p.buffer.name: torch.randn(2, p.elements) for p in layout.places if p.buffer.is_read}
    lease.fill(inputs)
    lease.poison(generator)
    at = {p.buffer.name: layout.start + layout.stride + p.offset for p in layout.places}
    at["end of y"] = at["y"] + next(p.size for p in layout.places if p.buffer.name == "y")
    return arena, lease, inputs, at


def test_an_honest_launch_leaves_no_trace() -> None:
    arena, lease, inputs, at = leased(TASK)
    assert lease.outputs(2)["y"].isnan().all()
    arena.bytes[at["y"] : at["end of y"]] = 0
    assert (lease.damage(inputs), lease.overrun()) == ("", "")
    assert lease.outputs(2)["y"][1].eq(0).all()
    arena.close()


@pytest.mark.parametrize(
    ("where", "offset", "says"), [("y", -1, "before output 'y'"), ("end of y", 0, "after output 'y'")]
)
def test_a_single_stray_byte_is_seen(where: str, offset: int, says: str) -> None:
    arena, lease, _, at = leased(TASK)
    arena.bytes[at[where] + offset] ^= 1
    assert says in lease.overrun()
    arena.close()


def test_a_changed_input_is_seen() -> None:
    arena, lease, inputs, at = leased(TASK)
    arena.bytes[at["x"] + 5] ^= 1
    assert lease.damage(inputs) == "input 'x' was changed"
    arena.close()
