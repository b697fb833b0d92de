"""What one campaign taught reaches the next one, and a campaign may submit its own result."""

import pytest
from campaign_bench import Bench, git

from protocol.ledger import Ledger
from protocol.state import CampaignState, fold


def _states(bench: Bench) -> list[CampaignState]:
    """Every campaign of this home, oldest first."""
    states: list[CampaignState] = []
    for path in bench.home.glob("runs/*/ledger.sqlite"):
        with Ledger(path) as ledger:
            states.append(fold(ledger.events()))
    return sorted(states, key=lambda state: state.first_time)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_campaign_submits_its_result_and_the_next_one_knows_what_it_taught(bench: Bench) -> None:
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "4", "--submit", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is known yet about this operator" in done.stdout
    (first,) = _states(bench)
    assert first.landed, done.stdout
    assert first.submitted is not None, done.stdout
    branch = f"autodev/{first.started.campaign}"
    assert first.submitted.branch == branch
    assert git(bench.task, "rev-parse", f"{branch}^").strip() == first.main
    brought = git(bench.task, "diff", "--name-only", f"{branch}^", branch)
    assert "team_notes/summary.md" in brought
    assert "notes/perf_log.md" in brought
    listed = bench.call("memory", "list").stdout
    plans = [first.experiments[one.experiment].plan for one in first.landed]
    techniques = {plan.technique for plan in plans if plan is not None}
    assert any(name in listed for name in techniques), listed

    done = bench.call("run", str(bench.task), "--yes", "--experiments", "1", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from 1 earlier campaigns" in done.stdout
    second = _states(bench)[-1]
    assert second.started.campaign != first.started.campaign
    preferred = {advice.technique for advice in second.started.advice if advice.word == "prefer"}
    assert preferred & techniques, "kept and landed: two measurements for it"
    assert all(advice.campaigns == (first.started.campaign,) for advice in second.started.advice)
    told = [e.plan for e in second.experiments.values() if e.plan and e.plan.technique in preferred]
    assert all("earlier campaigns: prefer" in plan.evidence for plan in told)
