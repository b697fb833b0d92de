"""A mind that is a small shell script: it splits the sum of ``campaign_bench.KERNEL`` once, and names its price."""

from pathlib import Path

TECHNIQUE = "split_sums"
DOLLARS = 0.25
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
{{"dollars": {DOLLARS}, "plan": {{"technique": "{TECHNIQUE}", "category": "${{category:-loops}}",
 "bottleneck": "one chain of dependent additions", "evidence": "the inner loop of row_energy.cpp",
 "change": "32 sums side by side", "mechanism": "independent additions fill the vector unit", "expected_gain": 1.0,
 "disproof": "no gain", "fallback": "fewer sums", "cell": "unknown/early"}}}}
ANSWER
"""


def member(role: str, folder: Path) -> str:
    """The lines of campaign.toml for an agent that thinks with it; the script is written to ``folder``."""
    script = folder / "mind.sh"
    script.write_text(MIND)
    return f'[[agents]]\nrole = "{role}"\nmind = "command"\noptions = {{ run = "sh {script}", seconds = 60 }}\n'
