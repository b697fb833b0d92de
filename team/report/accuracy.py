"""The report's account of errors: how near the kept experiments' outputs came to their tolerances."""

from protocol.accuracy import Trail, trails
from protocol.policy import Policy
from protocol.state import CampaignState
from team.report.markup import Markup
from team.report.table import section, table

_SHOWN = 12  # outputs
_STEPS = 8  # of the latest kept experiments
_COLUMNS = (("workload", ""), ("output", ""), ("latest", "num"), ("largest", "num"), ("kept experiments", ""), ("", ""))


def accuracy(state: CampaignState) -> Markup | None:
    """A section with one row per output and workload; None before anything was kept."""
    found = trails(state)
    if not found:
        return None
    about = (
        "Largest error of each output as a share of its tolerance (1 is the most that passes), through the kept "
        "experiments. One that creeps towards 1 buys its speed with accuracy."
    )
    return section("Accuracy", about, table(_COLUMNS, [_row(trail, state.policy) for trail in found[:_SHOWN]]))


def way(trail: Trail) -> str:
    """``#3 0.02, #7 0.05``: the latest steps."""
    return ", ".join(f"#{number} {error:.2g}" for number, error in trail.steps[-_STEPS:])


def _row(trail: Trail, policy: Policy) -> list[str]:
    workload, output = trail.place
    word = "creeps towards its tolerance" if trail.creeps(policy) else ""
    return [workload, output, f"{trail.last:.3f}", f"{trail.most:.3f}", way(trail), word]
