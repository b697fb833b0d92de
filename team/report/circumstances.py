"""The page's sections on how the results came about: agents, noise, searches, build, how to reproduce."""

from pathlib import Path
from shlex import quote

from protocol import events as ev
from protocol.messages import Build, SearchReport
from protocol.state import AgentState, CampaignState
from team.report import wording as w
from team.report.glyphs import inline_glyph
from team.report.markup import Child, Markup, el
from team.report.reading import Story
from team.report.setup import blocks
from team.report.table import section, small, table


def agents(story: Story) -> Markup:
    """Who worked on what, and with what success."""
    columns = (
        ("agent", "strong fit"), ("role", "fit"), ("mind", "fit"), ("device", "wide"), ("experiments", "num"),
        ("kept", "num"), ("landed", "num"), ("brought", "num"), ("searches", "num"), ("lost", "num"),
    )  # fmt: skip
    rows = [_agent_row(story, index, agent) for index, agent in enumerate(story.state.agents.values())]
    about = "Brought: the product of the verified gains of what an agent landed. Lost: times that its process died."
    return section("Agents", about, table(columns, rows))


def _agent_row(story: Story, index: int, agent: AgentState) -> list[Child]:
    state, name = story.state, agent.member.name
    mine = [e for e in state.judged if e.agent == name]
    landed = [one for one in state.landed if state.experiments[one.experiment].agent == name]
    gain = sum(one.gain.gain for one in landed)
    return [
        [inline_glyph(index), " ", name],
        agent.member.role.value,
        agent.member.mind,
        [w.short_device(agent.member.device), small(agent.device.name) if agent.device else None],
        str(len(mine)),
        str(sum(1 for e in mine if e.verdict is not None and e.verdict.kept)),
        str(len(landed)),
        w.times(w.ratio(gain)) if landed else "-",
        str(sum(1 for event, _ in story.of(ev.SearchReported) if event.agent == name)),
        str(sum(1 for event, _ in story.of(ev.AgentLost) if event.agent == name)),
    ]


def setup(state: CampaignState) -> Markup:
    """The blocks of phase A, as the user confirmed them."""
    about = "What is computed, on what, and what was agreed before the first experiment."
    shown = [
        [el("h3", title), table((("", "strong fit"), ("", "wide")), rows)]
        for title, rows in blocks(state.started).items()
    ]
    return section("Setup", about, shown)


def noise(state: CampaignState) -> Markup:
    """The campaign's check of itself: what A/A showed, and whether a known gain was found."""
    columns = (
        ("device", "strong"), ("noise floor", "num"), ("between restarts", "num"), ("one pair", "num"),
        ("A/A", "fit"), ("planted gain", "fit"),
    )  # fmt: skip
    threshold = w.percent(state.policy.threshold, 1)
    about = (
        f"Before the first experiment each device compared the baseline with itself, and with itself plus a known "
        f"{w.percent(state.policy.planted_gain, 1)} of extra work (more where few launches fit into memory). A keep "
        f"needs {threshold} or the noise floor, whichever is more, and an interval above zero."
    )
    rows = [_noise_row(baseline) for baseline in state.baselines.values()]
    return section("Noise and calibration", about, table(columns, rows, "Not calibrated yet."))


def _noise_row(baseline: ev.BaselineMeasured) -> list[Child]:
    found = "found" if baseline.planted_found else "missed"
    return [
        w.short_device(baseline.device),
        w.percent(baseline.noise.floor),
        w.percent(baseline.noise.restart_sd),
        w.percent(baseline.noise.pair_sd),
        "found a gain that is not there" if baseline.null_kept else "found nothing",
        f"{found} as {w.span(baseline.planted)}",
    ]


def searches(state: CampaignState) -> Markup | None:
    """What was looked up, and whether it led to a keep; nothing when nobody searched."""
    if not state.searches:
        return None
    columns = (("technique", "strong"), ("why", "wide"), ("sources", "wide"), ("keeps", "num"))
    rows = [_search_row(state, report) for report in state.searches.values()]
    about = "Searches that the law demanded after reverts in a row, and the keeps that are credited to their sources."
    return section("Searches", about, table(columns, rows))


def _search_row(state: CampaignState, report: SearchReport) -> list[Child]:
    credited = state.credits.get(report.id, {})
    sources = [el("div", s.title, small(_source(s.locator, credited.get(s.locator, 0)))) for s in report.sources]
    return [[report.technique, small(report.category)], report.why, sources, str(sum(credited.values()))]


def _source(locator: str, keeps: int) -> str:
    return f"{locator}, {keeps} kept" if keeps else locator


def build(state: CampaignState) -> Markup:
    """Compiler and flags of every build that was used."""
    found: dict[tuple[str, tuple[str, ...]], int] = {}
    for one in _builds(state):
        found[one.compiler, one.flags] = found.get((one.compiler, one.flags), 0) + 1
    columns = (("compiler", "strong"), ("flags", "wide"), ("builds", "num"))
    rows = [[compiler, el("code", " ".join(flags)), str(count)] for (compiler, flags), count in found.items()]
    about = "Flags belong to the judge and were equal on both sides of every comparison."
    return section("Build", about, table(columns, rows, "Nothing has been built yet."))


def _builds(state: CampaignState) -> list[Build]:
    measurements = [b.measurement for b in state.baselines.values()]
    measurements += [e.measurement for e in state.experiments.values() if e.measurement is not None]
    both = [one for m in measurements for one in (m.base_build, m.candidate_build)]
    return [one for one in both if one is not None]


def reproduce(state: CampaignState, run_dir: Path) -> Markup:
    """What to type to see it again."""
    base, main = w.short_commit(state.started.commit), w.short_commit(state.main)
    name = w.plain(state.started.campaign)
    lines = [
        f"# {base} (baseline) against {main} (main), in fresh processes",
        f"kernelteam ab {base} {main}",
        "# the result as a branch of the repository it came from",
        "kernelteam submit",
        "# this page, and every experiment as JSON, from the ledger",
        "kernelteam report",
        "kernelteam log --json",
    ]
    about = f"Campaign {name}, seed {state.started.seed}; its ledger is in {run_dir}."
    return section("How to reproduce", about, el("pre", "\n".join(lines)))


def get_command(state: CampaignState, run_dir: Path) -> str:
    """The git command that brings main into the user's repository."""
    hub = quote(str(run_dir.resolve() / "hub.git"))
    return f"git -C {quote(state.started.repository)} fetch {hub} main:kernelteam-{w.short_commit(state.main)}"
