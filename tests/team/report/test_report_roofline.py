"""The figures on evidence: the campaign's way under the roofs, what warps wait for, what methods contribute."""

import re
from dataclasses import replace
from itertools import pairwise
from math import exp
from pathlib import Path

import pytest
from campaigns import BASELINE_NS, WORKLOADS, campaign
from profiled import FIRST, PEAKS, floors, profiled_campaign

from protocol.messages import Roofline
from protocol.methods import Contribution
from team.evidence.roofline import roofline
from team.report.ablations import ablations_section
from team.report.html import page
from team.report.reading import Story, read_story
from team.report.roofline_plot import roofline_section
from team.report.roofline_scale import BOTTOM, LEFT, RIGHT, TOP, decades, scale_of
from team.report.stalls import stalls_section
from team.report.way import way_of


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("profiled")
    profiled_campaign(folder)
    return read_story(folder)


def test_the_way_goes_from_the_baseline_over_each_landing_to_main(story: Story) -> None:
    way = way_of(story)
    assert way is not None
    assert way.roofs.peak == PEAKS["float32_flops_per_s"]
    assert set(way.steps) == set(WORKLOADS)
    for name, steps in way.steps.items():
        assert len(steps) == 1 + len(story.state.landed)
        assert steps[0].line.time_ns == pytest.approx(BASELINE_NS[name])
        assert all(after.line.time_ns < before.line.time_ns for before, after in pairwise(steps))
        measured = story.state.main_measured[-1].workloads[name].gain
        assert steps[-1].line.time_ns == pytest.approx(BASELINE_NS[name] / exp(measured))
        alone = roofline(name, steps[-1].line.time_ns, floors(WORKLOADS[name]), PEAKS, "float32")
        assert steps[-1].line.share == pytest.approx(alone.share)


def test_every_point_lies_within_the_frame_and_under_its_roof(story: Story) -> None:
    drawn = roofline_section(story)
    assert drawn is not None
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    inside = [(x, y) for x, y in places if (x, y) != (7.0, 7.0)]  # the legend's marks have a frame of their own
    assert inside
    assert all(LEFT <= x <= RIGHT and TOP <= y <= BOTTOM for x, y in inside)
    assert "memory 4.1 TB/s" in drawn
    assert "float32 390 TFLOP/s" in drawn
    way = way_of(story)
    assert way is not None
    for steps in way.steps.values():
        line = steps[-1].line
        assert line.intensity is not None
        assert line.achieved_flops_per_s is not None
        assert line.achieved_flops_per_s < way.roofs.under(line.intensity, PEAKS["copy_bytes_per_s"])


def test_stalls_are_shown_of_the_first_and_the_last_profile(story: Story) -> None:
    drawn = stalls_section(story)
    assert drawn is not None
    assert drawn.index(">before<") < drawn.index(">after<")
    assert "long scoreboard: 52.0 %" in drawn
    assert "long scoreboard: 12.0 %" in drawn
    widths = [
        float(w) for w in re.findall(r'height="26" rx="2" class="segment|width="([\d.]+)" height="26"', drawn) if w
    ]
    assert sum(widths) == pytest.approx(2 * (1110 - 128) * sum(FIRST.values()), rel=0.05)


def test_each_method_has_its_word_and_only_measured_ones_a_bar(story: Story) -> None:
    drawn = ablations_section(story.state)
    assert drawn is not None
    for word in ("contributed", "did not contribute", "inconclusive", "without it the kernel does not build"):
        assert word in drawn
    assert drawn.count('class="ablated ') == 2
    assert len(story.state.ablations) == len(Contribution)


def test_without_model_profiles_or_ablations_nothing_is_drawn(tmp_path: Path) -> None:
    campaign(tmp_path, 4)
    plain = read_story(tmp_path)
    assert roofline_section(plain) is None
    assert stalls_section(plain) is None
    assert ablations_section(plain.state) is None
    (tmp_path / "blind").mkdir()
    profiled_campaign(tmp_path / "blind", floor=False)
    assert roofline_section(read_story(tmp_path / "blind")) is None


def test_the_page_carries_all_three(story: Story, tmp_path: Path) -> None:
    text = page(story, tmp_path, None, 1_785_000_900.0)
    for heading in ("Roofline", "What warps wait for", "What each method contributes"):
        assert f"<h2>{heading}</h2>" in text


def test_workloads_of_one_intensity_stand_in_a_row_and_axes_have_ticks(story: Story) -> None:
    way = way_of(story)
    assert way is not None
    steps = way.steps["square-128"]
    alike = {name: tuple(replace(step, line=renamed(step.line, name)) for step in steps) for name in "abc"}
    scale = scale_of(way.roofs, alike)
    columns = [scale.place(those[0])[0] for those in alike.values()]
    assert columns == sorted(columns)
    assert min(after - before for before, after in pairwise(columns)) > 10.0
    assert decades(0.14, 3.0) == pytest.approx([0.2, 0.5, 1.0, 2.0])
    assert decades(0.5, 2e3) == pytest.approx([1.0, 10.0, 100.0, 1000.0])


def renamed(line: Roofline, name: str) -> Roofline:
    return line.model_copy(update={"workload": name})
