"""Buffers that the judge owns and lends to one runner: a memory file, cut into slots, one per launch.

Trusted: this side of the memory. The runner maps the same pages, so nothing here is believed without a look: inputs are
compared with the judge's private copy after every block, outputs are poisoned before it, and a guard band before and
after every output must be untouched. Each runner gets an arena of its own, so neither side can read or write the
other's. The file's size is sealed: a runner that shrinks it could otherwise crash the judge.
"""

import fcntl
import mmap
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from team.judge.shim import scalar_word
from team.tasks.signature import Signature
from team.tasks.spec import Workload
from team.tasks.task import Buffer, Task

ALIGNMENT = 64  # bytes; a cache line, and the widest vector
GUARD = 512  # bytes before and after every output
PAGE = 4096
_WORDS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}  # for comparing bit by bit


class Arena:
    """A sealed memory file and this process's view of it. ``handle`` is what a runner on a GPU opens it by."""

    handle = b""

    def __init__(self, size: int) -> None:
        self.size = -(-size // PAGE) * PAGE
        self.descriptor = os.memfd_create("kernelteam-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, self.size)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.bytes = torch.frombuffer(mmap.mmap(self.descriptor, self.size), dtype=torch.uint8)

    def rows(self, start: int, stride: int, count: int, size: int, dtype: torch.dtype) -> torch.Tensor:
        """A (count, size) view: row i holds ``size`` elements of ``dtype`` from byte ``start + i * stride`` on."""
        item = dtype.itemsize
        return self.bytes.view(dtype).as_strided((count, size), (stride // item, 1), start // item)

    def close(self) -> None:
        """Give the memory back."""
        del self.bytes
        os.close(self.descriptor)


@dataclass(frozen=True)
class Place:
    """Where one buffer lies within a slot (bytes), and its element count."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    elements: int

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.elements * self.buffer.dtype.itemsize


@dataclass(frozen=True)
class Layout:
    """``launches`` slots of equal stride from ``start`` on; the same numbers serve both sides."""

    workload: Workload
    launches: int
    start: int
    stride: int
    places: tuple[Place, ...]
    alignment: int = ALIGNMENT

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + self.launches * self.stride

    def words(self, signature: Signature, launches: int) -> bytes:
        """The launch table of the first ``launches`` slots: arena offsets for pointers, bits for scalars."""
        if launches == 0:
            return b""
        offsets = {place.buffer.name: place.offset for place in self.places}
        values = {**self.workload.dims, **self.workload.scalars}
        slots = self.start + self.stride * np.arange(launches, dtype=np.uint64)
        table = np.zeros((launches, len(signature.parameters)), dtype="<u8")
        for column, parameter in enumerate(signature.parameters):
            if parameter.pointer:
                table[:, column] = slots + np.uint64(offsets[parameter.name])
            elif not parameter.is_stream:
                table[:, column] = scalar_word(parameter, values[parameter.name])
        return table.tobytes()


def slot_size(task: Task, workload: Workload, alignment: int = ALIGNMENT) -> int:
    """An upper bound of one slot's bytes."""
    return sum(_extent(task, buffer, workload, alignment) for buffer in task.buffers) + 2 * PAGE


def arrange(task: Task, workload: Workload, launches: int, dice: random.Random, alignment: int = ALIGNMENT) -> Layout:
    """Lay out ``launches`` slots at random aligned offsets, so that no run depends on one lucky alignment."""
    places: list[Place] = []
    at = dice.randrange(0, PAGE, alignment)
    for buffer in dice.sample(task.buffers, len(task.buffers)):
        shape = task.shape(buffer, workload)
        guard = GUARD if buffer.is_written else 0
        place = Place(buffer, at + guard, shape, torch.Size(shape).numel())
        places.append(place)
        at = place.offset + -(-place.size // alignment) * alignment + guard
    stride = at + dice.randrange(0, PAGE, alignment)
    start = dice.randrange(0, PAGE, alignment)
    return Layout(workload, launches, start, stride, tuple(places), alignment)


def pointer_mask(signature: Signature) -> int:
    """Bit k is set when parameter k is a pointer."""
    return sum(1 << column for column, parameter in enumerate(signature.parameters) if parameter.pointer)


class Lease:
    """One layout in one arena: fill, poison, inspect. What it hands out are views; what it compares with is private."""

    def __init__(self, arena: Arena, layout: Layout) -> None:
        self._arena = arena
        self._layout = layout
        self._guards: dict[str, torch.Tensor] = {}

    @property
    def workload(self) -> Workload:
        """The workload that it is laid out for."""
        return self._layout.workload

    def fill(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Copy private inputs, each (launches, elements), into the slots."""
        for place in self._layout.places:
            if place.buffer.is_read:
                self._data(place).copy_(inputs[place.buffer.name])

    def clear(self) -> None:
        """Zero all inputs: what a warm-up reads before the first fill."""
        for place in self._layout.places:
            if place.buffer.is_read:
                self._data(place).zero_()

    def poison(self, generator: torch.Generator) -> None:
        """Fill every output and its guard bands with fresh random bytes that are NaN where the dtype has one."""
        for place in self._layout.places:
            if not place.buffer.is_written:
                continue
            band = self._band(place)
            junk = noise_bytes(band.shape[1], place.buffer.dtype, generator)
            if place.buffer.is_read:
                band[:, :GUARD] = junk[:GUARD]
                band[:, GUARD + place.size :] = junk[GUARD + place.size :]
            else:
                words = self._band(place, torch.int64)  # a word at a time: bytes are eight times as many
                words.copy_(junk.view(torch.int64).expand(words.shape))
            self._guards[place.buffer.name] = junk

    def outputs(self, launches: int) -> dict[str, torch.Tensor]:
        """Views of the first launches' outputs, (launches, *shape) each; valid while the runner stands still."""
        written = [place for place in self._layout.places if place.buffer.is_written]
        return {place.buffer.name: self._data(place)[:launches].view(launches, *place.shape) for place in written}

    def damage(self, inputs: Mapping[str, torch.Tensor], rows: Sequence[int] | None = None) -> str:
        """One clause about a changed input of the launches ``rows`` (all by default), or an empty string."""
        some = slice(None) if rows is None else list(rows)
        for place in self._layout.places:
            if place.buffer.role == "input":
                words = _WORDS[place.buffer.dtype.itemsize]
                lent, kept = self._data(place).view(words)[some], inputs[place.buffer.name].view(words)[some]
                if not torch.equal(kept, lent):
                    return f"input '{place.buffer.name}' was changed"
        return ""

    def overrun(self) -> str:
        """One clause about a guard band that was written to, or an empty string."""
        for name, junk in self._guards.items():
            place = next(place for place in self._layout.places if place.buffer.name == name)
            band, end = self._band(place), GUARD + place.size
            for side, part in (("before", slice(0, GUARD)), ("after", slice(end, band.shape[1]))):
                if not torch.equal(band[:, part], junk[part].expand(band.shape[0], -1)):
                    return f"memory just {side} output '{name}' was written to"
        return ""

    def _data(self, place: Place) -> torch.Tensor:
        layout = self._layout
        start = layout.start + place.offset
        return self._arena.rows(start, layout.stride, layout.launches, place.elements, place.buffer.dtype)

    def _band(self, place: Place, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
        """The bytes (or words) of an output with both guards and the padding to the next cache line."""
        layout = self._layout
        size = -(-place.size // layout.alignment) * layout.alignment + 2 * GUARD
        start, count = layout.start + place.offset - GUARD, size // dtype.itemsize
        return self._arena.rows(start, layout.stride, layout.launches, count, dtype)


def noise_bytes(size: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """``size`` random bytes; for float types every aligned element is a NaN with a random payload and sign."""
    shape, device = (-(-size // 8),), generator.device
    words = torch.randint(-(2**63), 2**63 - 1, shape, dtype=torch.int64, generator=generator, device=device)
    quiet = {8: 0x7FFC_0000_0000_0000, 4: 0x7FE0_0000_7FE0_0000, 2: 0x7FF0_7FF0_7FF0_7FF0, 1: 0x7F7F_7F7F_7F7F_7F7F}
    if dtype.is_floating_point:
        words |= quiet[dtype.itemsize]
    return words.view(torch.uint8)[:size]


def _extent(task: Task, buffer: Buffer, workload: Workload, alignment: int) -> int:
    size = torch.Size(task.shape(buffer, workload)).numel() * buffer.dtype.itemsize
    return -(-size // alignment) * alignment + 2 * GUARD
