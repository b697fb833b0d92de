"""From an alarm to an accusation: what looked impossible must look impossible again on fresh samples. Trusted.

A machine in trouble (a neighbour's burst of interrupts, a paused virtual core) can make any honest kernel look like a
liar once. A liar lies again.
"""

from collections.abc import Callable

from protocol.messages import Outcome
from team.judge.failures import Failed
from team.judge.ground import TimingLoop


def refuse_unbelievable(contest: TimingLoop, still_wanted: Callable[[], None]) -> None:
    """Raise TAMPERED when the contest complains about its candidate, and does so again on fresh restarts alone.

    The fresh restarts are not evidence of speed: they exist only because of what was seen before.
    """
    if not contest.complaint()[1]:
        return
    contest.acquit()
    for _ in range(contest.policy.alarm_restarts):
        still_wanted()
        contest.restart(contest.policy.pairs_per_restart)
    workload, clause = contest.complaint()
    if clause:
        raise Failed("candidate", Outcome.TAMPERED, clause, workload)
