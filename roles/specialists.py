"""The specialists that the loop calls. They differ by this data and by nothing else."""

from dataclasses import dataclass
from typing import Literal

Name = Literal["researcher", "profiler", "inspector", "merger"]


@dataclass(frozen=True)
class Specialist:
    """One of them. ``mission`` is its first sentence, ``never`` what it leaves alone, ``looks_at`` what it is shown
    with a question; whoever has a duty of its own is shown that instead. None knows of the conversation that called it.
    """

    name: Name
    mission: str
    never: str
    looks_at: tuple[Literal["source", "workloads", "profile"], ...] = ()


RESEARCHER = Specialist(
    name="researcher",
    mission="You are the researcher: you read what is on record or on the web, and say what follows from it.",
    never="You write no code and guess no measurement.",
)
PROFILER = Specialist(
    name="profiler",
    mission="You are the profiler: you read a profile and a compiler's report, and name the one bottleneck they show.",
    never="You propose no change, and say so when the evidence does not carry a conclusion.",
    looks_at=("profile", "source"),
)
INSPECTOR = Specialist(
    name="inspector",
    mission="You are the inspector: you say what is special about the workloads (shapes, distributions of the values, "
    "sparsity, regimes) that a kernel may rely on, because the task promises it.",
    never="You never suggest to rely on what the task does not promise: inputs that you do not see are checked too.",
    looks_at=("workloads", "source"),
)
MERGER = Specialist(
    name="merger",
    mission="You are the merger: you bring two changes together so that both take effect.",
    never="You add no idea of your own.",
)
SPECIALISTS: dict[Name, Specialist] = {each.name: each for each in (RESEARCHER, PROFILER, INSPECTOR, MERGER)}
