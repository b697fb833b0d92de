"""A status on a terminal. ``render_status`` for ``kernelteam status``; the live view uses its parts."""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from team.report import wording as w
from team.report.lines import verdict_style
from team.report.status import Status

_DUTY_WIDTH = 36
_DIRECTION_WIDTH = 24
_STATE_STYLE = {
    "running": "bold green",
    "paused": "bold yellow",
    "stopping": "bold yellow",
    "wrapping up": "bold yellow",
    "finished": "bold",
    "dead": "bold red",
}


def render_status(status: Status) -> RenderableType:
    """The whole status: headline, budget, agents, verdicts, landing queue, noise, and what was agreed at the start."""
    above = (headline(status), Text(), budget_view(status), Text(), agents_table(status), Text())
    return Group(*above, *_footnotes(status), *setup_view(status))


def setup_view(status: Status) -> list[RenderableType]:
    """The blocks of phase A."""
    views: list[RenderableType] = []
    for title, rows in status["setup"].items():
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(style="dim", overflow="fold")
        for name, text in rows:
            grid.add_row(Text(w.plain(name)), Text(w.plain(text)))
        views += [Text(f"\n{title}"), grid]
    return views


def headline(status: Status) -> Text:
    """Task, state, main and its speedup."""
    text = Text.assemble(
        (w.plain(status["task"]) or "(no task yet)", "bold"),
        (f"  {w.plain(status['campaign'])}  ", "dim"),
        (status["state"], _STATE_STYLE.get(status["state"], "")),
        f"  {w.duration(status['elapsed_s'])}",
    )
    if status["why"]:
        text.append(f"\n{w.plain(status['why'])}", "dim")
    main = w.short_commit(status["main"]) or "-"
    if status["speedup"]["how"] == "baseline":
        return text.append(f"\nmain {main} is the baseline; nothing has landed yet")
    text.append(f"\nmain {main} is ").append(status["speedup"]["text"], "bold green")
    return text.append(f" over the baseline ({_source(status)})")


def _source(status: Status) -> str:
    how = {
        "measured": "measured directly",
        "measured and landed": "measured, times what landed since",
        "landed": "product of the landings",
    }[status["speedup"]["how"]]
    device = status["speedup"]["device"]
    return f"{how} on {w.short_device(device)}" if device else how


_OF_MODELS = ("tokens", "calls")
_BUDGET = (
    ("experiments", "{:g}"), ("minutes", "{:.1f}"), ("dollars", "${:.2f}"), ("tokens", "{:,.0f}"), ("calls", "{:g}"),
)  # fmt: skip


def budget_view(status: Status) -> RenderableType:
    """One bar for each limit of the budget; money without a limit as a figure."""
    grid = Table.grid(padding=(0, 2))
    for name, shape in _BUDGET:
        spent = status["budget"][name]
        if name in _OF_MODELS and not spent["used"] and spent["limit"] is None:
            continue
        used = shape.format(spent["used"])
        if spent["limit"] is None:
            grid.add_row(name, "", used)
        else:
            bar = ProgressBar(total=spent["limit"] or 1.0, completed=spent["used"], width=30)
            grid.add_row(name, bar, f"{used} of {shape.format(spent['limit'])}")
    return grid


def agents_table(status: Status) -> Table:
    """Who does what on which device."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("agent", "role", "device", "duty", "for", "tried", "kept", "phase", "direction", "owes"):
        right = name in ("for", "tried", "kept")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "duty")
    for agent in status["agents"]:
        table.add_row(
            Text(w.plain(agent["name"]), "cyan" if agent["alive"] else "dim"),
            agent["role"],
            w.short_device(agent["device"]),
            _duty_cell(agent, status["state"]),
            w.duration(agent["duty_s"]) if agent["duty"] else "",
            str(agent["experiments"]),
            str(agent["kept"]),
            agent["phase"],
            _direction(agent),
            Text(", ".join(agent["owes"]), "yellow"),
        )
    return table


def _direction(agent: Status) -> Text:
    """What it works on, and whose that is when it is not its own."""
    owner = f" (of {w.plain(agent['seconds'])})" if agent["seconds"] else ""
    return Text(w.cut(w.plain(agent["direction"]), _DIRECTION_WIDTH) + owner)


def _duty_cell(agent: Status, state: str) -> Text:
    """The one cell that gives way when a terminal is narrow."""
    style = "" if agent["alive"] else "dim"
    return Text(_duty(agent, state), style, no_wrap=True, overflow="ellipsis")


def _duty(agent: Status, state: str) -> str:
    if not agent["alive"]:
        return "done" if state == "finished" else "not alive"
    return w.cut(w.plain(f"{agent['duty']} {agent['subject']}"), _DUTY_WIDTH) if agent["duty"] else "idle"


def _footnotes(status: Status) -> list[Text]:
    notes = [_verdicts(status), _round(status)]
    if status["notes_failed"]:
        notes.append(Text(w.plain(f"notes are not written, tried again: {status['notes_failed']}"), "yellow"))
    for landing in status["landing"]:
        notes.append(Text(f"landing: #{landing['number']} of {w.plain(landing['agent'])} is {landing['stage']}"))
    for device, noise in status["noise"].items():
        floor, threshold = w.percent(noise["floor"]), w.percent(noise["threshold"])
        notes.append(Text(f"noise: {w.short_device(device)} floor {floor}, so a keep needs {threshold}", "dim"))
    if status["proposal"]:
        notes.append(Text(w.plain(f"submission is proposed: {status['proposal']}"), "bold yellow"))
    if status["abandoned"]:
        notes.append(Text(w.plain(f"abandoned: {', '.join(status['abandoned'])}"), "dim"))
    return notes


def _round(status: Status) -> Text:
    if status["team_over"]:
        return Text(w.plain(f"no more rounds: {status['team_over']}"), "dim")
    last = f"; the last one had outcome {status['outcome']}" if status["outcome"] else ""
    return Text(f"round {status['round']}{last}", "dim")


def _verdicts(status: Status) -> Text:
    counts = status["verdicts"]
    text = Text(f"verdicts: {'none yet' if not counts else ''}")
    for verdict, count in counts.items():
        text.append(f"{verdict} {count}  ", verdict_style(verdict))
    landed = status["experiments"]["landed"]
    return text.append(f"landed {landed}" if counts else "")
