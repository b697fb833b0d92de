"""A campaign whose only agent is a small shell script; beside another mind it works in test_campaign.py."""

import pytest
from campaign_bench import LIGHT_LAW, Bench
from shell_mind import DOLLARS, member


@pytest.mark.slow
def test_a_shell_script_makes_a_kernel_faster(bench: Bench) -> None:
    campaign = bench.home.parent / "campaign.toml"
    campaign.write_text(LIGHT_LAW + member("explorer", bench.home.parent))
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "2", "--campaign", str(campaign))
    assert done.returncode == 0, done.stdout + done.stderr
    state = bench.state()
    assert [landed.gain.speedup > 1.5 for landed in state.landed] == [True], done.stdout
    assert state.dollars == DOLLARS
    assert "no agent has another admissible idea" in state.finished
    assert bench.gone()
