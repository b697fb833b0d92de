"""How figures and other people's text are written: one place for digits, units and for making text harmless."""

import math
import unicodedata
from collections.abc import Mapping

from protocol.messages import SITE, TEXT, Estimate, Parameter

_LARGEST_GAIN = 50.0
_NANO = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def ratio(gain: float | None) -> float | None:
    """Speedup of a natural-log gain, clamped so that exp never overflows; None when there is none or it is NaN."""
    if gain is None or math.isnan(gain):
        return None
    return math.exp(max(-_LARGEST_GAIN, min(_LARGEST_GAIN, gain)))


def speedup(value: float | None) -> str:
    """A speedup with four significant digits, ``1.243x``; ``-`` when there is none."""
    if value is None:
        return "-"
    digits = max(0, min(3, 3 - math.floor(math.log10(value)))) if value > 0 else 3
    return f"{value:.{digits}f}x"


def interval(estimate: Estimate | None) -> str:
    """``1.243x [1.221, 1.266]`` of an estimate in log gains; ``-`` when there is none."""
    if estimate is None:
        return "-"
    low, high = (speedup(ratio(bound)).removesuffix("x") for bound in (estimate.low, estimate.high))
    return f"{speedup(ratio(estimate.gain))} [{low}, {high}]"


def times(value: float | None) -> str:
    """A speedup for a page, with the real multiplication sign."""
    return speedup(value).replace("x", "\N{MULTIPLICATION SIGN}")


def span(estimate: Estimate | None) -> str:
    """``interval`` for a page."""
    return interval(estimate).replace("x", "\N{MULTIPLICATION SIGN}")


def percent(fraction: float, digits: int = 2) -> str:
    """``0.93 %`` of 0.0093."""
    return f"{100.0 * fraction:.{digits}f} %"


def nanoseconds(value: float) -> str:
    """A time per launch with four significant digits and the unit that suits it."""
    size, unit = next((pair for pair in _NANO if value >= pair[0]), _NANO[-1])
    return f"{value / size:#.4g}".removesuffix(".") + f" {unit}"


def page_time(value: float) -> str:
    """``nanoseconds`` for a page, with the real micro sign."""
    return nanoseconds(value).replace("us", "\N{MICRO SIGN}s")


def duration(seconds: float) -> str:
    """``m:ss`` or ``h:mm:ss``."""
    total = max(0, int(seconds))
    hours, minutes, rest = total // 3600, total // 60 % 60, total % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def dollars(amount: float) -> str:
    """``$1.25``."""
    return f"${amount:.2f}"


def short_commit(commit: str) -> str:
    """The first ten characters of a commit."""
    return plain(commit[:10])


def short_device(device: str) -> str:
    """``cpu:0-1`` as it is; a GPU's UUID down to its first group, ``GPU-1a2b3c4d``."""
    parts = plain(device).split("-")
    return "-".join(parts[:2]) if len(parts) > 2 else "-".join(parts)


def parameters(values: Mapping[str, Parameter]) -> str:
    """``tile=64 unroll=4``: the settings, without what a mind keeps for itself."""
    return " ".join(f"{name}={_value(value)}" for name, value in values.items() if name not in (SITE, TEXT))


def _value(value: Parameter) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(text: str) -> str:
    """One line of printable ASCII: no escape sequence of a candidate or compiler reaches a terminal."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "replace").decode("ascii")
    return " ".join("".join(c if c.isprintable() else " " for c in folded).split())


def clean(text: str) -> str:
    """Text for a page: any script is kept, but controls and direction overrides become U+FFFD; new lines stay."""
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, with ``...`` where something was left out."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 3)] + "..."[: max(0, width)]
