"""The report's account of methods: what main owes to each, measured against itself without it."""

from protocol.events import MethodAblated
from protocol.messages import Estimate
from protocol.methods import Contribution
from protocol.state import CampaignState
from team.report import wording as w
from team.report.markup import Child, Markup, el
from team.report.table import code, section, small, table

_WIDTH = 220.0
_LOOKS = {
    Contribution.CONTRIBUTED: ("good", "contributed"),
    Contribution.NOT_CONTRIBUTED: ("flat", "did not contribute"),
    Contribution.INCONCLUSIVE: ("odd", "inconclusive"),
}


def ablations_section(state: CampaignState) -> Markup | None:
    """One row per method with its bar; None while nothing was ablated."""
    newest = {body.ablation.method: body for body in state.ablations}
    if not newest:
        return None
    gains = [body.ablation.gain for body in newest.values() if body.ablation.gain is not None]
    reach = max((max(abs(gain.low), abs(gain.high)) for gain in gains), default=0.05)
    about = (
        "Main against itself without one method, in pairs at the same shapes. A bar to the right of the line is time "
        "that the method saves; its whisker is the interval."
    )
    columns = (
        ("#", "num"), ("method", "strong"), ("speedup from it", "num"), ("", ""), ("", "fit"),
        ("in the machine code", "wide"), ("why", "wide"),
    )  # fmt: skip
    rows = [_row(state, body, reach) for body in sorted(newest.values(), key=_order)]
    return section("What each method contributes", about, table(columns, rows))


def _order(body: MethodAblated) -> float:
    return -body.ablation.gain.gain if body.ablation.gain is not None else 1.0


def _row(state: CampaignState, body: MethodAblated, reach: float) -> list[Child]:
    ablation = body.ablation
    look, words = _LOOKS[ablation.contribution]
    experiment = state.experiments.get(body.experiment)
    return [
        str(experiment.number) if experiment and experiment.number else "-",
        [ablation.method, small(code(w.short_commit(body.commit)))],
        w.span(ablation.gain),
        _bar(ablation.gain, reach, look) if ablation.gain is not None else None,
        el("span", words, class_=f"tag {look}"),
        [body.sass.status, small(body.sass.why)],
        ablation.why,
    ]


def _bar(gain: Estimate, reach: float, look: str) -> Markup:
    """Log gain from the middle outwards, with its interval as a whisker."""
    middle, scale = _WIDTH / 2, (_WIDTH / 2 - 6.0) / max(reach, 0.01)
    low, at, high = (middle + scale * max(-reach, min(reach, v)) for v in (gain.low, gain.gain, gain.high))
    left, width = min(middle, at), abs(at - middle)
    bar = el("rect", x=left, y=2.0, width=max(0.5, width), height=10.0, rx=1.5, class_=f"ablated {look}")
    line = el("path", d=f"M{low:.1f} 7H{high:.1f}M{low:.1f} 3v8M{high:.1f} 3v8", class_=f"ablated-whisker {look}")
    zero = el("line", x1=middle, x2=middle, y1=0.0, y2=14.0, class_="axis")
    return el("svg", bar, zero, line, class_="key", viewBox=f"0 0 {_WIDTH:.0f} 14", width=_WIDTH, height=14.0)
