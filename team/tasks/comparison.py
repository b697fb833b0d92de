"""How far an output is from its reference, as a share of the tolerance. Trusted; pure arithmetic on private tensors.

The rule is ``|got - want| <= atol + rtol * |want|`` element by element. NaN is never a wildcard: non-finite values must
stand exactly where the reference, rounded to the output's dtype, has them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch

from team.tasks.spec import Tolerance


@dataclass(frozen=True)
class Deviation:
    """``worst`` is the largest error as a share of its tolerance (``inf`` when no number fits); <= 1 passes.

    ``errors`` has the same for every output that was compared with this one.
    """

    worst: float
    output: str = ""
    detail: str = ""
    errors: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def passes(self) -> bool:
        """Whether the output counts as right; NaN does not."""
        return self.worst <= 1.0


def worst_of(found: Iterable[Deviation]) -> Deviation:
    """The worst of several, with the largest error of every output."""
    worst, errors = Deviation(0.0), dict[str, float]()
    for one in found:
        for name, error in (one.errors or {one.output: one.worst}).items():
            if name:
                errors[name] = max(error, errors.get(name, 0.0))
        if not one.worst <= worst.worst:
            worst = one
    return replace(worst, errors=errors)


def stated(name: str, said: float | str) -> Deviation:
    """What a task's own ``compare`` says of one output: its error as a share of what is allowed, or what is wrong."""
    if isinstance(said, str):
        return Deviation(math.inf, name, said)
    share = math.inf if math.isnan(said) else float(said)
    clause = f"output '{name}' is off by {share:.3g} times what is allowed"
    return Deviation(share, name, "" if share <= 1.0 else clause)


def deviation(
    name: str,
    got: torch.Tensor,
    want: torch.Tensor,
    dtype: torch.dtype,
    tolerance: Tolerance,
    slack: float = 0.0,
    bounded: bool = False,
) -> Deviation:
    """Compare one output of dtype ``dtype``; ``slack`` widens the absolute tolerance (units of the output).

    ``bounded``: where every error is within the absolute tolerance alone, ``worst`` may be its share of that one. What
    passes is the same; a third of the memory is read and written for it.
    """
    if got.dtype != dtype or got.shape != want.shape:
        said = f"is {got.dtype} of shape {tuple(got.shape)}, not {dtype} of shape {tuple(want.shape)}"
        return Deviation(math.inf, name, f"output '{name}' {said}")
    if not dtype.is_floating_point:
        return _exact(name, got, want.to(dtype))
    wide = torch.promote_types(want.dtype, torch.float32)
    seen = got.to(wide)
    difference, least = seen - want, max(tolerance.atol + slack, torch.finfo(wide).tiny)
    if bounded and (bound := _farthest(difference) / least) <= 1.0:
        return Deviation(bound, name)
    allowed = torch.add(torch.tensor(least, dtype=wide), want.to(wide).abs(), alpha=tolerance.rtol)  # one pass
    worst = _farthest(difference.div_(allowed))
    if worst <= 1.0:
        return Deviation(worst, name)
    return _closer(name, seen, want.to(dtype).to(wide), want.to(wide), allowed)


def _farthest(values: torch.Tensor) -> float:
    """The largest distance from zero; NaN when there is one."""
    low, high = values.aminmax()
    return float(torch.maximum(-low, high))


def _exact(name: str, got: torch.Tensor, want: torch.Tensor) -> Deviation:
    if torch.equal(got, want):
        return Deviation(0.0, name)
    wrong = (got != want).flatten()
    at = int(wrong.nonzero()[0])
    said = f"{int(wrong.sum())} of {wrong.numel()} elements of '{name}' differ, first [{at}]: "
    return Deviation(math.inf, name, said + f"got {got.flatten()[at].item()}, want {want.flatten()[at].item()}")


def _closer(
    name: str, got: torch.Tensor, rounded: torch.Tensor, want: torch.Tensor, allowed: torch.Tensor
) -> Deviation:
    """The slow path: non-finite values, or a failure that must be described."""
    got, rounded, want, allowed = (tensor.flatten() for tensor in (got, rounded, want, allowed))
    special = ~rounded.isfinite() | ~got.isfinite()
    same = (got == rounded) | (got.isnan() & rounded.isnan())
    misplaced = special & ~same
    if bool(misplaced.any()):
        at = int(misplaced.nonzero()[0])
        said = f"output '{name}' is {got[at].item():g} at [{at}] where the reference has {want[at].item():g}"
        return Deviation(math.inf, name, f"{said} ({int(misplaced.sum())} of {got.numel()} such elements)")
    share = torch.where(special, torch.zeros_like(got), (got - want).abs() / allowed)
    at = int(share.argmax())
    worst = float(share[at])
    said = f"output '{name}' is {got[at].item():.9g} at [{at}] where the reference has {want[at].item():.9g}"
    return Deviation(worst, name, "" if worst <= 1.0 else f"{said}, {worst:.3g} times the tolerance")
