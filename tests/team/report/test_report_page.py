"""The page: whole, self-contained, escaped, and without overlaps in its chart."""

import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
from campaigns import Script, campaign
from hypothesis import given
from hypothesis import strategies as st
from test_report_lines import HOSTILE

from protocol import events as ev
from protocol.messages import Verdict
from team.errors import UserError
from team.report.axes import axes_for, number_ticks, speedup_ticks
from team.report.chart import chart_of, draw
from team.report.glyphs import colour_class, glyph
from team.report.html import page, write_report
from team.report.labels import Box, Wish, box_of, place
from team.report.markup import Markup, el
from team.report.reading import read_story

VOID = {"meta", "br", "hr"}
FRAME = Box(0.0, 0.0, 1000.0, 500.0)


class Nesting(HTMLParser):
    """Fails on a tag that closes nothing, collects names and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Nesting:
    nesting = Nesting()
    nesting.feed(text)
    nesting.close()
    assert nesting.open == []
    return nesting


def rendered(run_dir: Path) -> Nesting:
    return parsed(write_report(run_dir, run_dir / "report.html").read_text(encoding="utf-8"))


def assert_alone(found: Nesting) -> None:
    """Nothing is loaded and nothing runs."""
    assert not {name for name, _ in found.seen} & {"script", "link", "img", "iframe", "object", "embed", "a", "form"}
    for _, attributes in found.seen:
        assert not any(key.startswith("on") or key in ("src", "href", "style") for key in attributes)


@pytest.mark.parametrize(("experiments", "keeps"), [(1, True), (3, True), (24, True), (12, False)])
def test_pages_of_all_sizes(tmp_path: Path, experiments: int, keeps: bool) -> None:
    script = campaign(tmp_path, experiments, keeps=keeps)
    found = rendered(tmp_path)
    assert_alone(found)
    for heading in ("Staircase", "Workloads", "Agents", "Landings", "Experiments", "What did not work",
                    "Noise and calibration", "Build", "How to reproduce"):  # fmt: skip
        assert heading in found.text
    assert ("hub.git" in found.text) == bool(script.state.landed)
    assert script.state.main[:10] in found.text


def test_a_large_team_on_gpus(tmp_path: Path) -> None:
    campaign(tmp_path, 20, devices=8, gpu=True)
    assert "8 × NVIDIA H200" in rendered(tmp_path).text


def test_a_campaign_that_has_only_begun(tmp_path: Path) -> None:
    script = Script(tmp_path)
    with pytest.raises(UserError):
        write_report(tmp_path, tmp_path / "report.html")
    script.start()
    assert "Nothing has landed" in rendered(tmp_path).text
    script.baselines()
    script.begin("explorer-1", script.plan())
    script.begin("exploiter-1", None)
    script.say("", ev.Resumed(lost=("explorer-1",)))
    assert "running" in rendered(tmp_path).text


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    campaign(tmp_path, 3)
    text = write_report(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|https?:|<script", text)
    assert "prefers-color-scheme: dark" in text


def test_every_text_of_others_is_escaped(tmp_path: Path) -> None:
    script = Script(tmp_path, task="matmul</title><script>alert(0)</script>")
    script.start(name='x"><img src=x onerror=alert(1)>')
    script.baselines()
    plan = script.plan(HOSTILE, HOSTILE, change=HOSTILE, bottleneck=HOSTILE, fallback=HOSTILE, rewrite=HOSTILE)
    ident = script.begin("explorer-1", plan)
    script.end(ident, Verdict.KEEP, 0.3, reason=HOSTILE, parameters={HOSTILE: HOSTILE})
    script.land(ident, 0.3, "exploiter-1")
    script.end(script.begin("explorer-1", plan), Verdict.TAMPERED, reason="</svg></style>" + HOSTILE)
    script.search("explorer-1", HOSTILE)
    found = rendered(tmp_path)
    assert_alone(found)
    assert "<script>alert(1)</script>" in found.text
    assert "\u202e" not in found.text
    assert "\x1b" not in found.text


def test_failures_have_their_reason_and_tampering_its_word(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    script.end(script.begin("explorer-1", script.plan("x")), Verdict.TAMPERED, reason="clocks disagree")
    text = rendered(tmp_path).text
    assert "TAMPERED" in text
    assert "clocks disagree" in text


@pytest.mark.parametrize(("experiments", "devices"), [(8, 2), (24, 2), (60, 4)])
def test_labels_lie_on_nothing(tmp_path: Path, experiments: int, devices: int) -> None:
    campaign(tmp_path, experiments, devices=devices, seed=experiments)
    story = read_story(tmp_path)
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="label (end|start)">(.*?)</text>', draw(story))
    assert labels
    boxes = [_label_box(*label) for label in labels]
    points = [
        (chart_of(story).axes.x(p.experiment.number), chart_of(story).axes.y(p.level)) for p in chart_of(story).points
    ]
    assert not any(one.meets(other) for one, other in combinations(boxes, 2))
    assert not any(box.meets(Box(x - 3.0, y - 3.0, x + 3.0, y + 3.0)) for box in boxes for x, y in points)


def _label_box(x: str, y: str, anchor: str, text: str) -> Box:
    width = 6.0 * len(re.sub("<.*?>", "", text))
    left = float(x) - width if anchor == "end" else float(x)
    return Box(left, float(y) - 11.0, left + width, float(y) + 2.0)


def test_a_point_stands_where_it_would_have_put_main(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.start()
    script.baselines()
    first = script.begin("explorer-1", script.plan())
    script.end(first, Verdict.KEEP, 0.5)
    script.land(first, 0.4, "exploiter-1")
    script.end(script.begin("exploiter-1", script.plan("other")), Verdict.REVERT, -0.1)
    points = chart_of(read_story(tmp_path)).points
    assert [round(point.level, 9) for point in points] == [0.5, 0.3]


names = st.text(min_size=1, max_size=20)
wishes = st.builds(Wish, names, st.just(" 1.1x"), st.floats(0.0, 1000.0), st.floats(0.0, 500.0), st.floats(0.0, 1.0))
boxes = st.builds(lambda x, y: Box(x, y, x + 9.0, y + 9.0), st.floats(0.0, 990.0), st.floats(0.0, 490.0))


@given(st.lists(wishes, max_size=12), st.lists(boxes, max_size=12))
def test_placed_labels_never_meet(wanted: list[Wish], obstacles: list[Box]) -> None:
    placed = [box_of(label) for label in place(wanted, obstacles, FRAME, 10)]
    assert all(box.inside(FRAME) for box in placed)
    assert not any(one.meets(other) for one, other in combinations(placed, 2))
    assert not any(box.meets(other) for box in placed for other in obstacles)


levels = st.floats(-6.0, 6.0)


@given(st.lists(levels, max_size=8), st.lists(levels, max_size=20), st.integers(0, 2000))
def test_axes_hold_main_and_have_round_ticks(main: list[float], points: list[float], last: int) -> None:
    axes = axes_for(main, points, last)
    assert all(axes.low < level < axes.high for level in [0.0, *main])
    assert all(27.99 <= axes.y(level) <= 440.01 for level in points)
    ticks = speedup_ticks(axes)
    assert 1.0 in [round(tick, 9) for tick in ticks]
    assert 2 <= len(ticks) <= 24
    assert len(number_ticks(last)) <= 16


def test_agents_differ_in_colour_and_shape() -> None:
    looks = {re.sub(r"[\d.,-]+", "", glyph(index, 0.0, 0.0, 4.0, True)) + colour_class(index) for index in range(12)}
    shapes = {glyph(index, 0.0, 0.0, 4.0, True) for index in range(12)}
    assert len(shapes) == 12
    assert len(looks) >= 6


@given(st.text(), st.text())
def test_markup_escapes_text_and_attributes(text: str, value: str) -> None:
    found = parsed(el("p", text, el("b", "x"), title=value))
    assert [name for name, _ in found.seen] == ["p", "b"]
    assert isinstance(el("p"), Markup)


def test_the_page_is_pure(tmp_path: Path) -> None:
    campaign(tmp_path, 3)
    story = read_story(tmp_path)
    assert page(story, tmp_path, None, 1e9) == page(story, tmp_path, None, 1e9)
