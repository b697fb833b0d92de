"""A campaign with a shape that no mind is told of: what is made for the listed one alone is kept, and never lands."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from campaign_bench import LIGHT_LAW, Bench, git

from protocol import events as ev
from protocol.messages import Verdict
from roles.minds.scripted import Play
from team.tasks.spec import HELD_OUT

sys.path.insert(0, str(Path(__file__).parents[1]))

from held_out_on_disk import FAST, SECRET, SLOW, kernel, write_task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback", "cell"), "words")
CASES = {
    "honest": (FAST, ""),
    "slower elsewhere": (
        f"if (n == 60000) {{ {FAST} return; }} for (int t = 0; t < 3; t++) {SLOW}",
        "slower on shapes that are not listed",
    ),
    "wrong elsewhere": (f"if (n == 60000) {{ {FAST} }}", "wrong on a shape that is not listed"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_for_the_listed_shape_alone_is_kept_and_does_not_land(case: str, bench: Bench) -> None:
    body, says = CASES[case]
    shutil.rmtree(bench.task)
    write_task(bench.task)
    git(bench.task, "add", ".")
    git(bench.task, "commit", "-q", "-m", "hold one out")
    plan = {**WORDS, "technique": "special", "category": "loop-order", "expected_gain": 0.5}
    variant = {"files": {"doubled.cpp": kernel(body)}, "parameters": {}}
    play = Play.model_validate({"proposals": [{"plan": plan, "variants": [variant]}]})
    script, law = bench.task.parent / "script.json", bench.task.parent / "campaign.toml"
    script.write_text(json.dumps(play.model_dump(mode="json")))
    law.write_text(LIGHT_LAW)
    team = ("--yes", "--experiments", "1", "--agents", f"explorer:scripted:{script}", "--campaign", str(law))
    done = bench.call("run", str(bench.task), *team, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    state, bodies = bench.state(), [event.body for event in bench.events()]
    assert [one.verdict for one in state.judged] == [Verdict.KEEP], done.stdout
    refused = [body.why for body in bodies if isinstance(body, ev.LandingRefused)]
    assert len(state.landed) == (not says), done.stdout
    assert [says in why for why in refused] == [True] * bool(says), refused
    assert SECRET not in done.stdout
    told = subprocess.run(["grep", "-rl", SECRET, str(bench.run / "worktrees")], capture_output=True, text=True)
    assert told.stdout == ""
    assert (Path(bench.run) / "trusted" / HELD_OUT).is_file()
