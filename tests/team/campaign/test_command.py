"""A campaign whose explorer is a small shell script."""

from campaign_bench import LIGHT_LAW, Bench

FAST = """\
#include <cstddef>
extern "C" void solve(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float* row = x + static_cast<std::size_t>(r) * cols;
        float sums[32] = {};
        int c = 0;
        for (; c + 32 <= cols; c += 32)
            for (int lane = 0; lane < 32; lane++) sums[lane] += row[c + lane] * row[c + lane];
        for (; c < cols; c++) sums[0] += row[c] * row[c];
        float total = 0.0f;
        for (float sum : sums) total += sum;
        y[r] = total;
    }
}
"""
MIND = f"""\
if grep -q sums row_energy.cpp; then
    echo '{{"nothing": "the sums are split already"}}' > "$KERNELTEAM_ANSWER"
    exit
fi
cat > row_energy.cpp <<'KERNEL'
{FAST}KERNEL
category=$(sed -n '/"allowed_categories": \\[$/{{n;s/[ ",]//g;p;}}' "$KERNELTEAM_BRIEFING")
cat > "$KERNELTEAM_ANSWER" <<ANSWER
{{"dollars": 0.25, "plan": {{"technique": "split_sums", "category": "${{category:-loops}}",
 "bottleneck": "one chain of dependent additions", "evidence": "the inner loop of row_energy.cpp",
 "change": "32 sums side by side", "mechanism": "independent additions fill the vector unit", "expected_gain": 1.0,
 "disproof": "no gain", "fallback": "fewer sums", "cell": "unknown/early"}}}}
ANSWER
"""


def test_a_shell_script_makes_a_kernel_faster(bench: Bench) -> None:
    script, campaign = bench.home.parent / "mind.sh", bench.home.parent / "campaign.toml"
    script.write_text(MIND)
    options = f'{{ run = "sh {script}", seconds = 60 }}'
    campaign.write_text(f'{LIGHT_LAW}\n[[agents]]\nrole = "explorer"\nmind = "command"\noptions = {options}\n')
    done = bench.call("run", str(bench.task), "--yes", "--experiments", "2", "--campaign", str(campaign))
    assert done.returncode == 0, done.stdout + done.stderr
    state = bench.state()
    assert [landed.gain.speedup > 1.5 for landed in state.landed] == [True], done.stdout
    assert state.dollars == 0.25
    assert "no agent has another admissible idea" in state.finished
    assert bench.gone()
