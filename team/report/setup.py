"""The blocks of phase A as a campaign was confirmed with them: operator, hardware, scope, what is known to be broken.

Each block is a title and rows of name and text; console, status, page and notes show the same rows.
"""

from collections.abc import Iterable, Mapping

from protocol.events import CampaignStarted
from protocol.policy import Policy

Rows = list[tuple[str, str]]
BROKEN = "Known broken, in no verdict"


def blocks(started: CampaignStarted) -> dict[str, Rows]:
    """Every block that there is, by its title."""
    found: dict[str, Rows] = {
        "Operator": started.problem.rows() if started.problem else [],
        "Hardware": started.hardware.rows() if started.hardware else [],
        "Scope": scope_rows(
            started.workloads, started.policy, started.tooling, started.campaign, started.repository, started.submit
        ),
        BROKEN: list(started.known_broken.items()),
    }
    return {title: rows for title, rows in found.items() if rows}


def scope_rows(
    must_pass: Mapping[str, object] | Iterable[str],
    policy: Policy,
    tooling: Iterable[str],
    campaign: str,
    repository: object,
    submit: bool,
) -> Rows:
    """What was agreed: workloads, metric, budget, when it stops, tooling, and where the result goes."""
    target = f"branch autodev/{campaign} of {repository}"
    rows = [
        ("must pass", ", ".join(must_pass)),
        ("metric", f"weighted geometric mean of speedup; keep at >= {policy.threshold:.1%}, never lower"),
        ("budget", _budget(policy)),
        ("stops", f"when that is spent, at your word, or when nobody has an idea{_target(policy)}"),
        ("tooling", ", ".join(tooling)),
        ("git target", f"{target}, {'when the campaign ends' if submit else 'by submit'}"),
    ]
    return [(name, text) for name, text in rows if text]


def _budget(policy: Policy) -> str:
    limits = [
        f"{policy.max_experiments} experiments" if policy.max_experiments else "",
        f"{policy.max_minutes:g} minutes" if policy.max_minutes else "",
        f"${policy.max_dollars:.2f}" if policy.max_dollars else "",
        f"{policy.max_tokens:,} tokens" if policy.max_tokens else "",
        f"{policy.max_calls} calls of models" if policy.max_calls else "",
    ]
    return ", ".join(limit for limit in limits if limit) or "none: until you stop it"


def _target(policy: Policy) -> str:
    return f", or past {policy.target_speedup:g}x when the last tries brought nothing" if policy.target_speedup else ""
