"""Minds that are somebody else's: a command line, and a model behind a Messages API on loopback."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from optimizing import BROKEN, FAST, LAW, SLOW_LOOP, optimized, read, run_of, write_inputs
from stand_in import StandIn, stood_in

from protocol.messages import Measurement, Outcome
from team.judge.request import Screen
from team.optimize.iteration import iterate
from team.optimize.options import Options

sys.path.insert(0, str(Path(__file__).parents[2] / "roles"))

from messages_server import Request, Turn, calls, serve, use

from roles.minds.anthropic.prices import TABLE, Usage

KEY = "sesame-open-5678"
EACH = Usage(input=1000, output=100, cache_write=200, cache_read=50).dollars(TABLE["claude-opus-5-5"])
WORDS = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback"), "words")
SCRIPT = f"""\
if ! grep -q volatile scale.cpp; then
    echo '{{"nothing": "the detour is gone", "dollars": 0.5}}' > "$KERNELTEAM_ANSWER"
    exit
fi
cat > scale.cpp <<'KERNEL'
{FAST}KERNEL
cat > "$KERNELTEAM_ANSWER" <<'ANSWER'
{{"dollars": 0.25, "plan": {{"technique": "no_detour", "category": "loops", "bottleneck": "a chain of products by one",
 "evidence": "scale.cpp, the inner loop", "change": "no inner loop", "mechanism": "it changes nothing",
 "expected_gain": 1.0, "disproof": "no gain", "fallback": "none", "cell": "unknown/early"}}}}
ANSWER
"""
MENDS = 'if grep -q undefined scale.cpp; then echo "{\\"dollars\\": 1.0}" > "$KERNELTEAM_ANSWER"; cat > scale.cpp <<E\n'


def options(folder: Path, mind: str, said: str, **more: Any) -> Options:
    write_inputs(folder)
    (folder / "law.toml").write_text(f'{LAW}[[agents]]\nrole = "explorer"\nmind = "{mind}"\noptions = {{ {said} }}\n')
    given = {
        "baseline": folder / "scale.cpp",
        "ref": folder / "ref.py",
        "dims": {"n": 4096},
        "law": folder / "law.toml",
    }
    return Options.model_validate({**given, "mind": mind, **more})


def script(folder: Path, text: str) -> str:
    (folder / "mind.sh").write_text(text)
    return f'run = "sh {folder / "mind.sh"}", seconds = 60'


def faster(text: str) -> float:
    return 0.0 if "volatile" in text else 0.5


def test_a_command_makes_a_kernel_faster_and_its_cost_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = options(tmp_path, "command", script(tmp_path, SCRIPT), dollars=5.0)
    with stood_in(asked, StandIn(faster, faster), monkeypatch) as session:
        assert iterate(session, 1)
        assert not iterate(session, 2)  # neither role has an idea, and both answers were paid
        state, published = session.state, session.folder.iteration(1)
    assert [(row["methods"], row["status"]) for row in state.history] == [(["no_detour"], "improved")]
    assert (published / "kernel.cpp").read_text() == FAST
    assert state.dollars == 0.25 + 2 * 0.5
    assert not session.folder.iteration(2).exists()


def test_a_command_mends_its_own_build_and_both_answers_are_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Compiling(StandIn):
        def screen(self, request: Screen) -> list[Measurement]:
            texts = [(Path(one) / "scale.cpp").read_text() for one in request.candidates]
            if BROKEN in texts:
                return [Measurement(outcome=Outcome.BUILD_FAILED, detail="undefined was not declared")]
            return super().screen(request)

    text = f"{MENDS}{FAST}E\nexit; fi\n{SCRIPT.replace(FAST, BROKEN)}"
    asked = options(tmp_path, "command", script(tmp_path, text))
    with stood_in(asked, Compiling(faster, faster), monkeypatch) as session:
        assert iterate(session, 1)
    assert session.state.history[0]["status"] == "improved"
    assert (session.folder.iteration(1) / "kernel.cpp").read_text() == FAST
    assert session.state.dollars == 1.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 3\n", "it left no answer \\(exit 3\\)"),
        ('echo changed > ref.py; echo "{}" > "$KERNELTEAM_ANSWER"\n', "it changed ref.py, which is not editable"),
        ('echo "{" > "$KERNELTEAM_ANSWER"\n', "its answer is wrong"),
    ],
)
def test_a_command_that_gives_no_usable_answer_ends_the_run_in_a_sentence(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    with stood_in(
        options(tmp_path, "command", script(tmp_path, text)), StandIn(faster, faster), monkeypatch
    ) as session:
        session.say = heard.append
        assert not iterate(session, 1)
    assert len(heard) == 2  # one for each role
    assert all(re.match(f"iteration 1: command as \\w+ has no idea: .*{said}", line) for line in heard), heard


def model(request: Request) -> Turn:
    step = sum(message["role"] == "assistant" for message in request["messages"])
    if "no_detour" in str(request["messages"][0]["content"]):  # it is in the history that it is told
        return calls(use("give_up", why="the detour is gone"))
    plan = {**WORDS, "technique": "no_detour", "change": "no inner loop", "expected_gain": 1.0, "cell": "unknown/early"}
    edit = use("edit_file", path="scale.cpp", old=SLOW_LOOP, new=FAST)
    return (calls(edit), calls(use("check")), calls(use("submit_plan", **plan, category="loops")))[step]


def test_a_model_makes_a_kernel_faster_and_every_answer_is_paid_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(model) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        asked = options(tmp_path, "anthropic", "turns = 4", dollars=5.0)
        with stood_in(asked, StandIn(faster, faster), monkeypatch) as session:
            assert iterate(session, 1)
            assert len(api.requests) == 3
            assert session.state.dollars == pytest.approx(3 * EACH)
            assert not iterate(session, 2)
            paid = session.state.dollars
        assert paid == pytest.approx(len(api.requests) * EACH)
    assert session.state.history[0]["methods"] == ["no_detour"]
    assert (session.folder.iteration(1) / "kernel.cpp").read_text() == FAST
    kept = [path for path in session.folder.path.rglob("*") if path.is_file()]
    assert "iterv1.jsonl" in [path.name for path in kept]
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []


def test_a_model_stops_before_the_money_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    with serve(lambda _: calls(use("read_file", path="scale.cpp"))) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        with stood_in(
            options(tmp_path, "anthropic", "turns = 9", dollars=0.5), StandIn(faster, faster), monkeypatch
        ) as session:
            session.say = heard.append
            assert not iterate(session, 1)
            assert 0.0 < session.state.dollars <= 0.5
    assert len(heard) == 2


@pytest.mark.slow
def test_the_command_line_with_a_command_for_a_mind(tmp_path: Path) -> None:
    folder = write_inputs(tmp_path)
    law = f'{LAW}[[agents]]\nrole = "explorer"\nmind = "command"\noptions = {{ {script(folder, SCRIPT)} }}\n'
    (folder / "law.toml").write_text(law)
    status, said = optimized(folder, "--iterations", "2", "--mind", "command")
    assert status == 0, said
    state = read(run_of(folder) / "state.json")
    assert (state["run_status"], state["history"][0]["methods"]) == ("completed", ["no_detour"])
    assert state["final"]["full"]["speedup"] > 1.5
    assert "as exploiter has no idea: the detour is gone" in said
