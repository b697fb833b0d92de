"""The staircase chart as inline SVG: every experiment where it would have put main, and main itself as a step line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from protocol import events as ev
from protocol.state import CampaignState, ExperimentState
from team.report import axes as at
from team.report import wording as w
from team.report.axes import Axes
from team.report.glyphs import colour_class, cross, glyph
from team.report.labels import Box, Wish, drawn_label, place
from team.report.levels import commit_levels, experiment_level, main_speedup, main_steps
from team.report.lines import idea_of, number_of
from team.report.markup import Markup, el
from team.report.reading import Story, device_of

_FRAME = Box(at.LEFT + 2.0, at.TOP - 18.0, at.RIGHT - 2.0, at.BOTTOM)
_MOST_LABELS = 16
_CROWDED = 80
_END_NOTE = {
    "measured": "main, measured",
    "measured and landed": "main, estimated",
    "landed": "main, by landings",
    "baseline": "the baseline",
}


@dataclass(frozen=True)
class Point:
    """A measured experiment: its level over the baseline in log gains, with the interval."""

    experiment: ExperimentState
    level: float
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """What is drawn, before it is drawn."""

    story: Story
    axes: Axes
    points: tuple[Point, ...]
    steps: tuple[tuple[int, float], ...]
    agents: dict[str, int]

    @property
    def state(self) -> CampaignState:
        """The campaign's state."""
        return self.story.state

    @property
    def radius(self) -> float:
        """Size of a point's mark."""
        return 4.6 if self.axes.last <= _CROWDED else 3.2


def chart_of(story: Story) -> Chart:
    """The chart of a campaign."""
    state = story.state
    points, steps = _points(state), main_steps(state)
    levels = [level for _, level in steps]
    main = main_speedup(state).estimate
    numbers = [e.number for e in state.experiments.values()]
    axes = at.axes_for([*levels, main.low, main.high], [p.level for p in points], max(numbers, default=0))
    agents = {name: index for index, name in enumerate(state.agents)}
    return Chart(story, axes, tuple(points), tuple(steps), agents)


def _points(state: CampaignState) -> list[Point]:
    levels = commit_levels(state)
    found: list[Point] = []
    for experiment in state.judged:
        level, overall = experiment_level(experiment, levels), experiment.overall
        if level is not None and overall is not None and w.ratio(level) is not None:
            base = level - overall.gain
            found.append(Point(experiment, level, base + overall.low, base + overall.high))
    return found


def draw(story: Story) -> Markup:
    """The SVG element."""
    chart = chart_of(story)
    labels = place(_wishes(chart), _obstacles(chart), _FRAME, _MOST_LABELS)
    return el(
        "svg",
        el(
            "title",
            f"Speedup of main over the baseline, by experiment: {w.interval(main_speedup(story.state).estimate)}",
        ),
        _grid(chart),
        _main(chart),
        [_error_bar(chart, point) for point in chart.points],
        [_mark(chart, point) for point in chart.points],
        _failures(chart),
        [drawn_label(label) for label in labels],
        _measured(chart),
        _end(chart),
        class_="chart",
        viewBox=f"0 0 {at.WIDTH:.0f} {at.HEIGHT:.0f}",
        role="img",
    )


def _grid(chart: Chart) -> list[Markup]:
    axes = chart.axes
    drawn: list[Markup] = []
    for tick in at.speedup_ticks(axes):
        y = axes.y(math.log(tick))
        look = "grid base" if abs(tick - 1.0) < 1e-9 else "grid"
        drawn.append(el("line", x1=at.LEFT, x2=at.RIGHT, y1=y, y2=y, class_=look))
        drawn.append(el("text", _tick_text(tick, axes), x=at.LEFT - 9.0, y=y + 4.0, class_="tick end"))
    for number in at.number_ticks(axes.last):
        drawn.append(el("text", str(number), x=axes.x(number), y=at.NUMBERS, class_="tick mid"))
    drawn.append(el("line", x1=at.LEFT, x2=at.RIGHT, y1=at.NUMBERS - 18.0, y2=at.NUMBERS - 18.0, class_="axis"))
    drawn.append(el("text", "experiment", x=(at.LEFT + at.RIGHT) / 2, y=at.NUMBERS + 24.0, class_="tick mid"))
    return drawn


def _tick_text(tick: float, axes: Axes) -> str:
    narrow = axes.high - axes.low < 1.4
    return f"{tick:.2f}×" if narrow else f"{tick:g}×"


def _main(chart: Chart) -> list[Markup]:
    """Main as a step line on a tinted ground."""
    axes = chart.axes
    path = f"M{at.LEFT:.1f} {axes.y(0.0):.1f}"
    for number, level in chart.steps[1:]:
        path += f"H{axes.x(number):.1f}V{axes.y(level):.1f}"
    path += f"H{at.RIGHT:.1f}"
    ground = f"{path}V{axes.y(0.0):.1f}H{at.LEFT:.1f}Z"
    return [el("path", d=ground, class_="ground"), el("path", d=path, class_="main")]


def _error_bar(chart: Chart, point: Point) -> Markup | None:
    axes, x = chart.axes, chart.axes.x(point.experiment.number)
    if axes.below(point.high):
        return None
    colour = colour_class(chart.agents[point.experiment.agent])
    return el("line", x1=x, x2=x, y1=axes.y(point.low), y2=axes.y(point.high), class_=f"bar {colour}")


def _mark(chart: Chart, point: Point) -> Markup:
    experiment, axes = point.experiment, chart.axes
    index, x = chart.agents[experiment.agent], axes.x(experiment.number)
    kept = experiment.verdict is not None and experiment.verdict.kept
    mark = glyph(index, x, axes.y(point.level), chart.radius, kept, _tooltip(chart, experiment, point.level))
    if not axes.below(point.level):
        return mark
    y = axes.y(point.level)
    arrow = el("path", d=f"M{x - 3.5:.1f} {y + 8:.1f}h7l-3.5 5z", class_=f"off {colour_class(index)}")
    return el("g", mark, arrow)


def _tooltip(chart: Chart, experiment: ExperimentState, level: float | None) -> str:
    device = device_of(experiment.measurement, chart.state.agents[experiment.agent].member.device)
    verdict = experiment.verdict.value if experiment.verdict else "running"
    lines = [f"{number_of(experiment)} {idea_of(experiment)}", f"{experiment.agent} on {device}"]
    lines.append(f"{verdict} {w.interval(experiment.overall)}" if experiment.overall else verdict)
    if level is not None:
        lines.append(f"would put main at {w.speedup(w.ratio(level))} over the baseline")
    return "\n".join([*lines, experiment.reason][:5])


def _failures(chart: Chart) -> list[Markup]:
    """What has no speedup: a cross for a failure, a dash for a lost one, a dot for one that runs."""
    drawn_already = {point.experiment.id for point in chart.points}
    rest = [e for e in chart.state.experiments.values() if e.number and e.id not in drawn_already]
    name = el("text", "failed", x=at.LEFT - 9.0, y=at.FAILURES + 4.0, class_="tick end")
    heading = [name] if any(experiment.verdict for experiment in rest) else []
    return [*heading, *(_without_speedup(chart, experiment) for experiment in rest)]


def _without_speedup(chart: Chart, experiment: ExperimentState) -> Markup:
    x, index = chart.axes.x(experiment.number), chart.agents[experiment.agent]
    tip = _tooltip(chart, experiment, None)
    if experiment.verdict is None:
        return el("circle", el("title", tip), cx=x, cy=at.FAILURES, r=3.6, class_=f"running {colour_class(index)}")
    if experiment.verdict.value == "LOST":
        dash = f"M{x - 4:.1f} {at.FAILURES:.1f}h8"
        return el("path", el("title", tip), d=dash, class_=f"cross {colour_class(index)}")
    return cross(index, x, at.FAILURES, chart.radius - 0.8, tip)


# ---------------------------------------------------------------- labels


def _wishes(chart: Chart) -> list[Wish]:
    wishes: list[Wish] = []
    for landed, (number, level) in zip(chart.state.landed, chart.steps[1:], strict=True):
        experiment = chart.state.experiments[landed.experiment]
        name = w.cut(experiment.plan.technique if experiment.plan else "", 28)
        tail = f" {w.times(w.ratio(landed.gain.gain))}"
        wishes.append(Wish(name, tail, chart.axes.x(number), chart.axes.y(level), landed.gain.gain))
    return wishes


def _obstacles(chart: Chart) -> list[Box]:
    axes, size = chart.axes, chart.radius + 2.0
    boxes: list[Box] = []
    for point in chart.points:
        x, y = axes.x(point.experiment.number), axes.y(point.level)
        boxes.append(Box(x - size, y - size, x + size, y + size))
        boxes.append(Box(x - 1.0, axes.y(point.high), x + 1.0, axes.y(point.low)))
    return boxes + _step_boxes(axes, chart.steps)


def _step_boxes(axes: Axes, steps: Sequence[tuple[int, float]]) -> list[Box]:
    boxes: list[Box] = []
    ends = [*steps[1:], (None, 0.0)]
    for (number, level), (until, after) in zip(steps, ends, strict=True):
        y, right = axes.y(level), at.RIGHT if until is None else axes.x(until)
        boxes.append(Box(axes.x(number), y - 2.0, right, y + 2.0))
        if until is not None:
            top, bottom = sorted((y, axes.y(after)))
            boxes.append(Box(right - 2.0, top, right + 2.0, bottom))
    return boxes


# ---------------------------------------------------------------- main, measured


def _measured(chart: Chart) -> list[Markup]:
    """Earlier direct measurements of main, as small diamonds at the number that was judged last."""
    newest, drawn = 0, []
    last = chart.state.main_measured[-1] if chart.state.main_measured else None
    for event in chart.story.events:
        if isinstance(event.body, ev.ExperimentJudged) and event.body.experiment in chart.state.experiments:
            newest = max(newest, chart.state.experiments[event.body.experiment].number)
        if isinstance(event.body, ev.MainMeasured) and event.body.estimate and event.body is not last:
            tip = el("title", f"main {w.short_commit(event.body.commit)} measured: {w.interval(event.body.estimate)}")
            x, y = chart.axes.x(newest), chart.axes.y(event.body.estimate.gain)
            drawn.append(el("path", tip, d=f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z", class_="measured"))
    return drawn


def _end(chart: Chart) -> list[Markup | None]:
    """Main's speedup at the right, with its interval where that is tall enough to be seen."""
    main, axes = main_speedup(chart.state), chart.axes
    x, y = at.RIGHT + 12.0, axes.y(main.estimate.gain)
    low, high = axes.y(main.estimate.low), axes.y(main.estimate.high)
    bar = f"M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {high:.1f}h8"
    base = axes.y(0.0)
    return [
        el("path", d=bar, class_="end-bar") if low - high > 12.0 else None,
        el("circle", cx=x, cy=y, r=4.0, class_="end-dot"),
        el("text", w.times(w.ratio(main.estimate.gain)), x=x + 13.0, y=y + 7.0, class_="end-value"),
        el("text", _END_NOTE[main.how], x=x + 13.0, y=y + 24.0, class_="tick"),
        el("text", "baseline", x=x + 13.0, y=base + 4.0, class_="tick") if base - y > 44.0 else None,
    ]
