"""How many elements every pointer of ``solve`` needs, found by running the reference on small shapes.

A reference that is given flat buffers knows their extents: it views, slices, reads and writes them. So it is run on two
sets of small dims that are different primes, with buffers that are larger than anything it may want. What it asks a
view of, the last element that it writes, and the last element that its results depend on are numbers, and a number made
of different primes says which dims it is the product of. Nothing is ever assumed from the user's own sizes, among which
two may be equal by chance. Trusted: the reference is human-owned.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Any, Literal

import torch

from team.tasks.signature import Parameter, Signature

Role = Literal["input", "output", "inout"]
Reference = Callable[..., Any]
Run = Callable[[Mapping[str, torch.Tensor]], "dict[str, torch.Tensor] | None"]

_PRIMES = ((5, 3, 7, 2, 11, 13), (3, 7, 2, 5, 13, 11))
_STEPS = (1, 16)  # primes as they are, and times 16 for references that want whole tiles
_KEPT = 4  # dims of the user up to this size may be counts or flags, and are tried as they are too
_MOST = 1 << 22  # elements of a probing buffer
_POWERS = (0, 1, 2)
_FACTORS = (1, 2, 3, 4)
_INDICES = 2  # integers are 0 or 1: an index into anything that has two elements
_RESIZED = "An output with one or more elements was resized"
_VIEWS = (torch.Tensor.view, torch.Tensor.reshape, torch.reshape)


@dataclass(frozen=True)
class Need:
    """What one pointer needs: its extent as a product such as ``M*K``, its role, and how that is known.

    ``extent`` is empty where the reference takes the whole buffer, however long it is, or where no product of dims
    fits. ``silent``: the reference did not write this output at all.
    """

    extent: str
    role: Role
    silent: bool = False


@dataclass
class Seen:
    """What one run of the reference on a set of dims showed of each pointer."""

    dims: dict[str, int]
    room: int
    sizes: dict[str, int] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)


class Elastic(torch.Tensor):
    """A flat buffer, longer than anybody needs, that gives a view of its beginning for whatever shape is asked."""

    asked: int

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A view of another size than the buffer's own is one of its beginning; its size is noted."""
        kwargs = kwargs or {}
        if func in _VIEWS and args and isinstance(args[0], Elastic) and args[0].dim() == 1:
            buffer, shape = args[0], _shape(args[1:], kwargs)
            wanted = prod(shape) if shape else 0
            with torch._C.DisableTorchFunctionSubclass():
                plain = buffer.as_subclass(torch.Tensor)
                if shape and min(shape) > 0 and wanted <= plain.numel():
                    buffer.asked = max(getattr(buffer, "asked", 0), wanted)
                    return plain[:wanted].view(*shape)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*_plain(args), **{key: _plain(value) for key, value in kwargs.items()})


def _shape(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape that a view is asked for; empty for a view of another kind."""
    given = args or tuple(kwargs.values())
    flat = given[0] if len(given) == 1 and isinstance(given[0], tuple | list | torch.Size) else given
    return tuple(int(one) for one in flat) if all(isinstance(one, int) for one in flat) else ()


def _plain(value: Any) -> Any:
    if isinstance(value, Elastic):
        return value.as_subclass(torch.Tensor)
    if isinstance(value, tuple | list):
        return type(value)(_plain(one) for one in value)
    return value


def needs_of(
    reference: Reference, signature: Signature, dims: Mapping[str, int], scalars: Mapping[str, float]
) -> dict[str, Need]:
    """What each pointer needs; empty when the reference runs on no small shape that was tried.

    ``dims`` are the user's own; only those of at most four are ever tried as they are.
    """
    for sets in _attempts(dims):
        seen = [_probe(reference, signature, one, scalars) for one in sets]
        if all(seen):
            return {
                pointer.name: Need(
                    _extent(pointer.name, [one for one in seen if one]),
                    _role(pointer.name, seen),
                    not pointer.const and any(one.sizes.get(pointer.name, 0) == 0 for one in seen if one),
                )
                for pointer in signature.pointers
            }
    return {}


def _attempts(dims: Mapping[str, int]) -> Iterator[list[dict[str, int]]]:
    """Pairs of dims to try: all primes, then with small dims of the user as they are, then the same in tiles of 16."""
    small = {name for name, value in dims.items() if value <= _KEPT}
    for step in _STEPS:
        for kept in dict.fromkeys((frozenset[str](), frozenset(small))):
            sets = [
                {
                    name: dims[name] if name in kept else step * primes[place % len(primes)]
                    for place, name in enumerate(dims)
                }
                for primes in _PRIMES
            ]
            if all(2 * prod(one.values()) <= _MOST for one in sets):
                yield sets


def _probe(
    reference: Reference, signature: Signature, dims: dict[str, int], scalars: Mapping[str, float]
) -> Seen | None:
    """One set of dims; None when the reference fails on it."""
    seen = Seen(dims, max(64, 2 * prod(dims.values())))
    generator = torch.Generator().manual_seed(1)
    buffers = {p.name: _junk(p, seen.room, generator) for p in signature.pointers}
    others = {p.name: _other(p, buffers[p.name], generator) for p in signature.pointers}

    def run(changes: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
        given = {name: (changes.get(name, value)).clone().as_subclass(Elastic) for name, value in buffers.items()}
        return _run(reference, signature, {**dims, **scalars}, given, seen)

    base, moved = run({}), run({p.name: others[p.name] for p in signature.pointers if not p.const})
    if base is None or moved is None:
        return None
    for pointer in signature.pointers:
        if not pointer.const:
            _written(seen, pointer.name, base, moved, buffers, others)
    integers = [p.name for p in signature.pointers if p.const and not buffers[p.name].dtype.is_floating_point]
    for pointer in signature.pointers:
        if pointer.const:
            name, seen.roles[pointer.name] = pointer.name, "input"
            fixed = {one: torch.ones_like(buffers[one]) for one in integers if one != name}
            read = _read(run, name, buffers[name], others[name], fixed)
            seen.sizes[name] = max(seen.sizes.get(name, 0), read)
    return seen


def _read(run: Run, name: str, kept: torch.Tensor, other: torch.Tensor, ones: Mapping[str, torch.Tensor]) -> int:
    """One past the last element of an input that is read; 0 when integers decide by their contents which ones are.

    All other integers are one, so that factors and masks hide nothing. With zeros for them, factors and masks leave
    nothing; a table that is looked up is read at its beginning, and what was read of it says nothing of its extent.
    """
    most = _last_read(run, name, kept, other, ones)
    if most is None:
        return _last_read(run, name, kept, other, {}) or 0
    if not ones:
        return most
    least = _last_read(run, name, kept, other, {one: torch.zeros_like(value) for one, value in ones.items()})
    looked_up = least is not None and most != least and (least > 0 or most <= _INDICES)
    return 0 if looked_up else most


def _other(pointer: Parameter, kept: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Contents that differ from ``kept`` in every element, of the same kind."""
    if kept.dtype.is_floating_point:
        return _junk(pointer, kept.numel(), generator)
    return (1 - kept.to(torch.int64)).to(kept.dtype)


def _junk(pointer: Parameter, size: int, generator: torch.Generator) -> torch.Tensor:
    """Contents that differ from each other: numbers for floats, small non-negative ones for integers."""
    dtype: torch.dtype = getattr(torch, pointer.dtype)
    if dtype.is_floating_point:
        return (torch.rand(size, generator=generator, dtype=torch.float64) + 0.25).to(torch.float64)
    return torch.randint(0, _INDICES, (size,), generator=generator).to(dtype)


def _run(
    reference: Reference,
    signature: Signature,
    numbers: Mapping[str, float],
    given: Mapping[str, torch.Tensor],
    seen: Seen,
) -> dict[str, torch.Tensor] | None:
    """Every non-const buffer after one run, flat; None when the reference raised."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=_RESIZED)  # the reference does not take flat buffers
            returned = reference({**numbers, **given})
    except Exception:  # noqa: BLE001  human-owned code may raise anything on shapes that it was not written for
        return None
    for name, buffer in given.items():
        seen.sizes[name] = max(seen.sizes.get(name, 0), getattr(buffer, "asked", 0))
    names = [pointer.name for pointer in signature.pointers if not pointer.const]
    after = {name: given[name].as_subclass(torch.Tensor) for name in names}
    for name, value in _returned(returned, names).items():
        after[name] = value.detach().flatten().to(after[name].dtype)
        seen.sizes[name] = value.numel()
    return after


def _returned(returned: object, names: Sequence[str]) -> dict[str, torch.Tensor]:
    if isinstance(returned, torch.Tensor):
        return {names[0]: returned}
    pairs = returned.items() if isinstance(returned, dict) else ()
    if isinstance(returned, tuple | list):
        pairs = zip(names, returned, strict=False)
    return {str(name): value for name, value in pairs if name in names and isinstance(value, torch.Tensor)}


def _written(
    seen: Seen,
    name: str,
    base: Mapping[str, torch.Tensor],
    moved: Mapping[str, torch.Tensor],
    buffers: Mapping[str, torch.Tensor],
    others: Mapping[str, torch.Tensor],
) -> None:
    """Extent and role of an output, from two runs that began with different contents of it."""
    one, two = base[name], moved[name]
    if one.numel() != buffers[name].numel():  # it was returned
        seen.roles[name] = "output" if torch.equal(one, two) else "inout"
        return
    changed = (one != buffers[name]) | (two != others[name])
    last = int(changed.nonzero().max()) + 1 if bool(changed.any()) else 0
    seen.sizes[name] = max(seen.sizes.get(name, 0), last) if last else 0
    same = torch.equal(one[:last], two[:last])
    seen.roles[name] = "output" if same else "inout"


def _last_read(
    run: Run, name: str, kept: torch.Tensor, other: torch.Tensor, fixed: Mapping[str, torch.Tensor]
) -> int | None:
    """One past the last element of an input on which a result depends, by bisection; 0 when none does.

    ``fixed`` are contents of other inputs; None when the reference fails on them.
    """
    base = run(fixed)
    if base is None:
        return None

    def matters_from(start: int) -> bool:
        found = run({**fixed, name: torch.cat([kept[:start], other[start:]])})
        return found is None or any(not torch.equal(found[key], value) for key, value in base.items())

    low, high = 0, kept.numel()
    while low < high:
        middle = (low + high) // 2
        if matters_from(middle):
            low = middle + 1
        else:
            high = middle
    return low


def _role(name: str, seen: Sequence[Seen | None]) -> Role:
    roles: set[Role] = {one.roles[name] for one in seen if one}
    return roles.pop() if len(roles) == 1 else "inout"


def _extent(name: str, seen: Sequence[Seen]) -> str:
    """The simplest product of dims that gives the size seen on every set; empty when there is none."""
    sizes = [one.sizes.get(name, 0) for one in seen]
    if not all(sizes) or all(size == one.room for size, one in zip(sizes, seen, strict=True)):
        return ""
    names = list(seen[0].dims)
    fits = (
        (factor, powers)
        for factor, powers in _by_simplicity(len(names))
        if all(
            factor * prod(one.dims[dim] ** power for dim, power in zip(names, powers, strict=True)) == size
            for one, size in zip(seen, sizes, strict=True)
        )
    )
    for factor, powers in islice(fits, 1):
        words = [dim for dim, power in zip(names, powers, strict=True) for _ in range(power)]
        return "*".join([*([str(factor)] if factor > 1 or not words else []), *words])
    return ""


def _by_simplicity(dims: int) -> list[tuple[int, tuple[int, ...]]]:
    """Every factor and powers of the dims, those with the fewest factors first."""
    every = product(_FACTORS, product(_POWERS, repeat=dims))
    return sorted(every, key=lambda one: (sum(one[1]) + (one[0] > 1), one[0], max(one[1], default=0)))
