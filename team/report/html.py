"""``kernelteam report``: one self-contained HTML file, without scripts or anything to load, in light and dark."""

import os
import time
from importlib.resources import files
from pathlib import Path

from protocol.state import CampaignState
from team.report import circumstances, results
from team.report import wording as w
from team.report.ablations import ablations_section
from team.report.accuracy import accuracy
from team.report.chart import draw
from team.report.glyphs import inline_glyph
from team.report.levels import main_speedup
from team.report.markup import Child, Markup, el, joined
from team.report.reading import Story, coordinator_pid, read_started_story
from team.report.roofline_plot import roofline_section
from team.report.stalls import stalls_section
from team.report.status import Status, status_of
from team.report.table import code, section

_FEW = 4


def write_report(run_dir: Path, path: Path) -> Path:
    """Write the page of the campaign in ``run_dir`` to ``path``, whole or not at all; returns ``path``.

    ``UserError`` when there is no campaign, or it has not started yet.
    """
    story = read_started_story(run_dir)
    text = page(story, run_dir, coordinator_pid(run_dir), time.time())
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
    return path


def page(story: Story, run_dir: Path, pid: int | None, now: float) -> str:
    """The page's text. ``pid``: the living coordinator's, None when it is dead; ``now``: seconds since 1970."""
    state = story.state
    status = status_of(state, pid, now)
    body = el(
        "body",
        _header(state, status, run_dir),
        _staircase(story),
        results.workloads(state),
        roofline_section(story),
        stalls_section(story),
        circumstances.agents(story),
        results.landings(story),
        ablations_section(state),
        accuracy(state),
        results.experiments(state),
        results.failures(state),
        circumstances.searches(state),
        circumstances.setup(state),
        circumstances.noise(state),
        circumstances.build(state),
        circumstances.reproduce(state, run_dir),
        el("footer", f"Kernel Team, rendered {_date(now)} from {state.last_seq} events of the ledger."),
    )
    return f"<!doctype html>\n{el('html', _head(state), body, lang='en')}\n"


def _head(state: CampaignState) -> Markup:
    title = f"{state.started.task}: {w.times(w.ratio(main_speedup(state).estimate.gain))}, Kernel Team"
    style = (files("team.report") / "style.css").read_text(encoding="utf-8")
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("style", Markup(style)),
    )


def _header(state: CampaignState, status: Status, run_dir: Path) -> Markup:
    get = el("pre", circumstances.get_command(state, run_dir), class_="get") if state.landed else None
    return el(
        "header",
        el("div", f"Kernel Team \N{MIDDLE DOT} {state.started.campaign}", class_="over"),
        el("h1", state.started.task),
        el("div", _figure(state), _facts(state, status), class_="hero"),
        get,
    )


def _figure(state: CampaignState) -> Markup:
    """Main's speedup in large, and where it is known from."""
    main = main_speedup(state)
    figure, bounds = results.headline_speedup(state)
    large = el("div", figure, el("small", "\N{MULTIPLICATION SIGN}"), class_="figure")
    if main.how == "baseline":
        return el("div", large, el("p", "Nothing has landed: main is the baseline.", class_="under"))
    where = f" on {w.short_device(main.device)}" if main.device else ""
    under = ["over the baseline, ", el("b", bounds), el("br"), f"{_HOW[main.how]}{where}"]
    return el("div", large, el("p", under, class_="under"))


_HOW = {
    "measured": "measured directly",
    "measured and landed": "measured, times what landed since",
    "landed": "product of the verified landings",
}


def _facts(state: CampaignState, status: Status) -> Markup:
    counts = status["experiments"]
    tried = f"{counts['judged']} judged, {counts['kept']} kept, {counts['landed']} landed"
    tried += f"; {counts['running']} in progress" if counts["running"] else ""
    facts: list[tuple[str, Child]] = [
        ("State", [status["state"], f": {status['why']}" if status["why"] else ""]),
        ("Main", [code(w.short_commit(state.main)), " from baseline ", code(w.short_commit(state.started.commit))]),
        ("Devices", _devices(state)),
        ("Experiments", tried),
        ("Time", f"{w.duration(status['elapsed_s'])}, begun {_date(state.first_time)}"),
        ("Spent", w.dollars(state.dollars)),
    ]
    return el("dl", [[el("dt", name), el("dd", value)] for name, value in facts])


def _devices(state: CampaignState) -> str:
    """How many of which name, and their ids while these are few."""
    ids: dict[str, list[str]] = {}
    for agent in state.agents.values():
        known = ids.setdefault(agent.device.name if agent.device else "not seen yet", [])
        known.append(w.short_device(agent.member.device))
    return "; ".join(_counted(name, list(dict.fromkeys(found))) for name, found in ids.items())


def _counted(name: str, found: list[str]) -> str:
    if len(found) > _FEW:
        return f"{len(found)} \N{MULTIPLICATION SIGN} {name}"
    return f"{name} ({', '.join(found)})"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds)) + " UTC"


def _staircase(story: Story) -> Markup:
    error = w.percent(story.state.policy.total_error, 1)
    about = (
        "Every experiment at the speedup it would have given main, on a logarithmic scale; the line is main. "
        f"Vertical bars are intervals; each of their ends is wrong with a chance of at most {error}."
    )
    return section("Staircase", about, _legend(story.state), el("div", draw(story), class_="scroll"))


def _legend(state: CampaignState) -> Markup:
    names = [el("span", inline_glyph(index), name) for index, name in enumerate(list(state.agents)[:12])]
    words = joined(
        el("span", _sample(True), "kept"),
        el("span", _sample(False), "reverted"),
        el("span", _cross(), "failed"),
    )
    return el("div", names, el("div", words, class_="rest"), class_="legend")


def _sample(filled: bool) -> Markup:
    dot = el("circle", cx=7, cy=7, r=4.5, class_=f"glyph c5 {'kept' if filled else 'hollow'}")
    return el("svg", dot, class_="key", viewBox="0 0 14 14", width=14, height=14, aria_hidden="true")


def _cross() -> Markup:
    path = el("path", d="M3.5 3.5l7 7m0 -7l-7 7", class_="cross c5")
    return el("svg", path, class_="key", viewBox="0 0 14 14", width=14, height=14, aria_hidden="true")
