"""Whole campaigns whose explorer is a model behind a Messages API on loopback."""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from campaign_bench import KERNEL, LIGHT_LAW, Bench

sys.path.insert(0, str(Path(__file__).parents[2] / "roles"))

from messages_server import Api, Block, Request, Turn, calls, searched, serve, use
from shell_mind import FAST

from protocol import events as ev
from roles.minds.anthropic.prices import TABLE, Usage

KEY = "sesame-open-5678"
WORDS = dict.fromkeys(("bottleneck", "evidence", "mechanism", "disproof", "fallback"), "words")
EACH = Usage(input=1000, output=100, cache_write=200, cache_read=50).dollars(TABLE["claude-opus-5-5"])
LOOK = use("read_file", path="row_energy.cpp")
DOCS = "https://docs.nvidia.com/cuda/guide"


def plan(request: Request, technique: str, **more: str) -> Block:
    """A plan within the direction that the request tells of."""
    told = str(request["messages"][0]["content"])
    category = re.search(r"categories of your direction: ([^,\n]+)", told)
    cites = re.search(r"`cites` must be '(\w+)'", told)
    return use(
        "submit_plan", **WORDS, technique=technique, change=technique, expected_gain=0.1, cell="unknown/early",
        category=category[1] if category else "loops", cites=cites[1] if cites else "", **more,
    )  # fmt: skip


def rewritten(text: str) -> Block:
    return use("edit_file", path="row_energy.cpp", old=KERNEL, new=text)


def step(request: Request) -> int:
    """Answers before this one in its conversation."""
    return sum(message["role"] == "assistant" for message in request["messages"])


@contextmanager
def campaign(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, script: Callable[[Request], Turn], law: str = ""
) -> Iterator[Api]:
    """A server, the environment that points to it, and a campaign file with one model."""
    with serve(script) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        text = f'{LIGHT_LAW}{law}\n[[agents]]\nrole = "explorer"\nmind = "anthropic"\noptions = {{ turns = 4 }}\n'
        (bench.home.parent / "campaign.toml").write_text(text)
        yield api


def run(bench: Bench, experiments: int) -> str:
    file = str(bench.home.parent / "campaign.toml")
    done = bench.call("run", str(bench.task), "--yes", "--experiments", str(experiments), "--campaign", file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert bench.gone()
    return done.stdout


def bodies(bench: Bench, kind: type[ev.Body]) -> list[ev.Body]:
    return [event.body for event in bench.events() if isinstance(event.body, kind)]


def test_without_a_key_nothing_starts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    done = bench.call("run", str(bench.task), "--yes", "--agents", "explorer:anthropic")
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert "ANTHROPIC_API_KEY is not set. Set it" in sentence
    assert not list(bench.home.glob("runs/*"))


@pytest.mark.slow
def test_a_model_makes_a_kernel_faster_and_its_key_stays_with_its_mind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: dict[str, bool] = {}

    def script(request: Request) -> Turn:
        for process in bench.processes():
            with suppress(psutil.Error):
                if "team.judge.server" in process.cmdline():
                    keys["judge"] = KEY in process.environ().values()
        return (calls(rewritten(FAST)), calls(use("check")), calls(plan(request, "split_sums")))[step(request)]

    with campaign(bench, monkeypatch, script) as api:
        shown = run(bench, 1)
    state = bench.state()
    assert [landed.gain.speedup > 1.1 for landed in state.landed] == [True], shown
    assert "is right" in str(api.requests[2]["messages"][-1]["content"])
    assert (state.calls, state.dollars) == (3, pytest.approx(3 * EACH))
    assert state.experiments[state.judged[0].id].dollars == pytest.approx(3 * EACH)
    assert keys == {"judge": False}
    kept = [path for path in bench.run.rglob("*") if path.is_file()]
    assert f"{state.judged[0].id}.jsonl" in [path.name for path in kept]
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_a_search_on_the_web_brings_citations_into_the_ledger(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(request: Request) -> Turn:
        names = [tool["name"] for tool in request["tools"]]
        if "report_search" in names:
            source = {"title": "Guide", "locator": DOCS}
            found = {"technique": "split_sums", "category": "loops", "why": "independent sums", "sources": [source]}
            blocks = (*searched("split sums", ("The guide", DOCS)), use("report_search", **found))
            return Turn(blocks=blocks, stop="tool_use")
        owed = "`cites` must be" in str(request["messages"][0]["content"])
        text = FAST if owed else KERNEL + "// no change\n"
        return calls(rewritten(text), plan(request, "split_sums" if owed else "comment"))

    with campaign(bench, monkeypatch, script, "stuck_after = 1\n"):
        shown = run(bench, 2)
    (search,) = bodies(bench, ev.SearchReported)
    assert isinstance(search, ev.SearchReported)
    assert search.report.queries == ("split sums",)
    assert [(source.title, source.locator) for source in search.report.sources] == [("The guide", DOCS)]
    state = bench.state()
    assert [one.plan.cites for one in state.judged if one.plan] == ["", search.report.id], shown
    assert state.judged[1].verdict is not None
    assert state.judged[1].verdict.kept
    assert any(DOCS in finding.source for finding in state.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", ["max_dollars = 0.4", "max_tokens = 40000", "max_calls = 12", "max_agent_dollars = 0.4"]
)
def test_it_stops_before_a_budget_is_passed(bench: Bench, monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    name, limit = law.split(" = ")
    with campaign(bench, monkeypatch, lambda request: calls(LOOK), f"{law}\nduty_share = 0.25\n") as api:
        run(bench, 10)
    state = bench.state()
    spent = getattr(state, name.split("_")[-1])
    assert 0 < spent <= float(limit)
    assert state.calls == api.answered()
    assert state.finished


@pytest.mark.slow
def test_a_conversation_that_never_hands_in_has_a_clear_end_and_its_cost_is_booked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with campaign(bench, monkeypatch, lambda request: calls(LOOK)) as api:
        shown = run(bench, 10)
    ends = bodies(bench, ev.NothingProposed)
    assert [
        (end.failed, "4 answers and nothing was handed in" in end.why)
        for end in ends
        if isinstance(end, ev.NothingProposed)
    ] == [(True, True)] * 3, shown
    state = bench.state()
    assert state.calls == api.answered() == 12
    assert state.dollars == pytest.approx(12 * EACH)
    assert "no agent has another admissible idea" in state.finished


@pytest.mark.slow
def test_what_goes_wrong_on_the_way_is_overcome_within_one_experiment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turned away twice, a connection that drops, an input of a tool that is no JSON, one that lacks a part."""
    lacking = use("edit_file", path="row_energy.cpp", old=KERNEL)
    troubles = [
        Turn(status=429, error="rate_limit_error"),
        Turn(status=529, error="overloaded_error"),
        calls(rewritten(FAST), cut=3),
        calls(rewritten(FAST), broken_json=True),
        calls(lacking),
    ]

    def script(request: Request) -> Turn:
        return troubles.pop(0) if troubles else calls(rewritten(FAST), plan(request, "split_sums"))

    with campaign(bench, monkeypatch, script) as api:
        shown = run(bench, 1)
    state = bench.state()
    assert len(state.landed) == 1, shown
    assert "the input of edit_file is wrong at 'new'" in str(api.requests[-1]["messages"][-1]["content"])
    assert (api.answered(), state.calls) == (6, 4), "who is turned away pays nothing; a broken answer is paid"
    assert state.dollars > 3 * EACH, "what came of a broken answer is estimated, and never too low"


@pytest.mark.slow
def test_a_refusal_and_a_conversation_that_is_too_long_are_told_as_what_they_are(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [
        Turn(stop="refusal"),
        Turn(status=400, error="invalid_request_error", says="prompt is too long: 3 tokens > 2 maximum"),
        Turn(stop="model_context_window_exceeded"),
    ]
    with campaign(bench, monkeypatch, ends) as api:
        shown = run(bench, 10)
    why = [end.why for end in bodies(bench, ev.NothingProposed) if isinstance(end, ev.NothingProposed) and end.failed]
    told = (
        "the model refused to answer",
        "too long for the model: prompt is too long",
        "become too long for the model",
    )
    assert [part in end for part, end in zip(told, why, strict=True)] == [True] * 3, shown
    state = bench.state()
    assert (api.answered(), state.calls) == (3, 2)
    assert state.dollars == pytest.approx(2 * EACH)


@pytest.mark.slow
def test_what_was_answered_before_a_kill_is_never_asked_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = threading.Event()

    def script(request: Request) -> Turn:
        if step(request) == 2 and not killed.is_set():
            for process in bench.processes():
                with suppress(psutil.Error):
                    process.kill()
            killed.set()
        return (calls(LOOK), calls(rewritten(FAST)), calls(plan(request, "split_sums")))[step(request)]

    with campaign(bench, monkeypatch, script) as api:
        file = str(bench.home.parent / "campaign.toml")
        first = bench.call("run", str(bench.task), "--yes", "--experiments", "1", "--campaign", file)
        assert killed.is_set(), first.stdout + first.stderr
        assert bench.gone()
        paid = bench.state().dollars
        assert paid == pytest.approx(2 * EACH)
        again = bench.call("resume")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [step(request) for request in api.requests] == [0, 1, 2, 2]
    state = bench.state()
    assert (state.calls, state.dollars) == (3, pytest.approx(3 * EACH))
    assert len(state.landed) == 1
