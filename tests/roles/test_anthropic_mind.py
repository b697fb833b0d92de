"""The anthropic mind against a Messages API on loopback."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from messages_server import Api, Request, Turn, calls, searched, serve, text, use
from workshops import RecordingWorkshop

from protocol.messages import (
    Briefing,
    Chronicle,
    Means,
    Merge,
    Phase,
    Plan,
    Position,
    ProfileReport,
    Proposal,
    Recheck,
    ResolveMerge,
    Role,
    Variant,
)
from protocol.policy import Policy
from roles import specialists
from roles.minds.anthropic.key import KEYS
from roles.minds.anthropic.mind import AnthropicMind
from roles.minds.anthropic.options import AnthropicOptions
from roles.minds.anthropic.prices import SEARCH_DOLLARS, TABLE, Price, Usage
from roles.minds.anthropic.tape import read
from roles.minds.mind import CannotResolve, MindFailed, NothingToPropose
from roles.minds.registry import UnknownMind, check_mind
from roles.prompts import conversations

KEY = "sesame-open-1234"
SOURCE = "int one = 1;\nint two = 2;\n"
WORDS = dict.fromkeys(("bottleneck", "evidence", "change", "mechanism", "disproof", "fallback"), "words")
PLAN = {**WORDS, "technique": "t", "category": "loops", "expected_gain": 0.1, "cell": "unknown/early"}
EDIT = use("edit_file", path="kernel.cpp", old="int one = 1;", new="int one = 3;")
SUBMIT = use("submit_plan", **PLAN)
DOCS = "https://docs.nvidia.com/cuda/guide"
EACH = Usage(input=1000, output=100, cache_write=200, cache_read=50).dollars(TABLE["claude-opus-5-5"])


def told(**changes: object) -> Briefing:
    values = {
        "agent": "explorer-1", "role": Role.EXPLORER, "number": 0, "task": "t", "language": "cpp",
        "numerics": "reference", "editable": {"kernel.cpp": SOURCE}, "base": "b" * 40, "workloads": {"w": {"n": 3}},
        "phase": Phase.EARLY, "position": Position.UNKNOWN, "means": Means(duty="x1"),
    }  # fmt: skip
    return Briefing.model_validate({**values, **changes})


class Bench:
    """A server, a workshop and minds that talk to it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        origin = folder / "origin"
        origin.mkdir()
        (origin / "kernel.cpp").write_text(SOURCE)
        (origin / "reference.py").write_text("the reference\n")
        self.workshop = RecordingWorkshop(origin, folder / "scratch")
        self._stack = stack
        self.api: Api

    def mind(self, script: list[Turn] | Callable[[Request], Turn], **options: Any) -> AnthropicMind:
        self.api = self._stack.enter_context(serve(script))
        return self.again(**options)

    def again(self, **options: Any) -> AnthropicMind:
        """Another process' mind, as it were, at the same server."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_BASE_URL", self.api.url)
            patch.setenv("ANTHROPIC_API_KEY", KEY)
            return AnthropicMind(AnthropicOptions.model_validate({"retries": 2, **options}), self.workshop)

    @property
    def results(self) -> list[str]:
        """What the tools said in the newest request."""
        content = self.api.requests[-1]["messages"][-1]["content"]
        return [_plain(block["content"]) for block in content if block["type"] == "tool_result"]


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, stack)


def test_edits_and_a_plan_become_a_proposal_whose_cost_is_counted_at_once(bench: Bench) -> None:
    proposal = bench.mind([calls(EDIT), calls(use("check")), calls(SUBMIT)]).propose(told())
    assert proposal.plan == Plan.model_validate(PLAN)
    assert proposal.variants[0].files == {"kernel.cpp": SOURCE.replace("1;", "3;", 1)}
    assert proposal.dollars == 0.0
    assert [(call.duty, call.number) for call in bench.workshop.calls] == [("x1", 1), ("x1", 2), ("x1", 3)]
    assert bench.workshop.calls[0].dollars == pytest.approx(EACH)
    assert bench.workshop.calls[0].tokens == 1350
    assert bench.workshop.checked == [proposal.variants[0].files]
    assert "is right" in bench.results[0]
    assert bench.workshop.scraps() == []


def test_it_streams_caches_and_names_its_model_and_effort(bench: Bench) -> None:
    bench.mind([calls(EDIT), calls(SUBMIT)], model="claude-sonnet-5-5", effort="low").propose(told())
    for request in bench.api.requests:
        assert request["stream"] is True
        assert request["cache_control"] == {"type": "ephemeral"}
        assert (request["model"], request["output_config"]) == ("claude-sonnet-5-5", {"effort": "low"})
    assert KEY in bench.api.headers[0]["authorization"] + bench.api.headers[0].get("x-api-key", "")


def test_the_key_is_in_no_record(bench: Bench) -> None:
    bench.mind([calls(EDIT), calls(SUBMIT)]).propose(told())
    kept = [path for path in bench.workshop.scratch.parent.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in kept)
    assert not any(KEY in path.read_text(errors="replace") for path in kept)


def test_what_is_wrong_is_told_and_can_be_done_again(bench: Bench) -> None:
    wrong = [
        use("edit_file", path="reference.py", old="the", new="no"),
        use("edit_file", path="kernel.cpp", old="int", new="long"),
        use("read_file", path="../../etc/passwd"),
        use("submit_plan", **{**PLAN, "change": ""}),
        use("submit_plan", **PLAN),
        use("edit_file", path="kernel.cpp"),
        use("no_such_tool"),
        use("check"),
    ]
    with pytest.warns(UserWarning, match="no_such_tool"):
        bench.mind([calls(*wrong), calls(EDIT), calls(SUBMIT)]).propose(told())
    said = [_plain(b["content"]) for b in bench.api.requests[1]["messages"][-1]["content"]]
    for part, words in zip(
        said,
        (
            "not editable",
            "stands 2 times",
            "there is no",
            "'change'",
            "no editable file",
            "'old'",
            "not found",
            "nothing is changed",
        ),
        strict=True,
    ):
        assert words in part


def test_reading_cards_findings_and_other_files(bench: Bench) -> None:
    look = [
        use("read_file", path="kernel.cpp", first=2),
        use("read_file", path="reference.py"),
        use("technique", name="all"),
        use("findings", words="nothing like this"),
        use("profile"),
    ]
    bench.mind([calls(*look), calls(use("give_up", why="all done"))])
    with pytest.raises(NothingToPropose, match="all done") as said:
        bench.again().propose(told())
    assert not isinstance(said.value, MindFailed)
    read_part, reference, cards, findings, profile = bench.results
    assert read_part.strip() == "2  int two = 2;"
    assert "the reference" in reference
    assert "loop" in cards
    assert "nothing on record" in findings
    assert "nothing was profiled" in profile


def test_machine_code_is_that_of_the_edits_and_is_looked_at_once(bench: Bench) -> None:
    look = [EDIT, use("machine_code", function="solve", first=3)]
    script = [calls(*look), calls(use("machine_code", first=0)), calls(SUBMIT)]
    mind = bench.mind(lambda request: script[sum(m["role"] == "assistant" for m in request["messages"])], turns=2)
    with pytest.raises(MindFailed):
        mind.propose(told(language="cuda"))
    assert bench.workshop.disassembled == [({"kernel.cpp": SOURCE.replace("1;", "3;", 1)}, "solve", 3)]
    said = _plain(bench.api.requests[1]["messages"][-1]["content"][1]["content"])
    assert said.startswith("sm_90a, function solve")
    bench.workshop.forget()
    bench.again().propose(told(language="cuda", means=Means(duty="x2", lost=("x1",))))
    assert bench.api.answered() == 3
    assert bench.workshop.disassembled == []
    assert "'first'" in _plain(bench.api.requests[2]["messages"][-1]["content"][0]["content"])


def test_where_there_is_no_machine_code_and_no_counter_it_is_said(bench: Bench) -> None:
    claim = "compiler remarks stand in for a profile; they say what was vectorised, not what limits the kernel"
    seen = ProfileReport(commit="c" * 40, tool="g++ -fopt-info-vec", claim=claim, remarks=("loop vectorized",))
    bench.mind([calls(use("machine_code"), use("profile")), calls(use("give_up", why="seen"))])
    with pytest.raises(NothingToPropose, match="seen"):
        bench.again().propose(told(profile=seen))
    code, profile = bench.results
    assert "runs on a CPU: there is no machine code" in code
    assert bench.workshop.disassembled == []
    assert "no figures" in profile
    assert claim in profile
    assert "loop vectorized" in profile


def test_variants_of_one_change(bench: Bench) -> None:
    other = use("edit_file", path="kernel.cpp", old="int one = 3;", new="int one = 4;")
    script = [
        calls(EDIT),
        calls(use("save_variant", parameters={"one": 3})),
        calls(other),
        calls(use("submit_plan", **PLAN, parameters={"one": 4})),
    ]
    proposal = bench.mind(script).propose(told())
    assert [variant.parameters for variant in proposal.variants] == [{"one": 4}, {"one": 3}]
    assert len({variant.files["kernel.cpp"] for variant in proposal.variants}) == 2


def test_requests_that_are_turned_away_are_repeated_by_the_sdk(bench: Bench) -> None:
    busy = [Turn(status=429, error="rate_limit_error"), Turn(status=529, error="overloaded_error")]
    bench.mind([*busy, calls(EDIT), calls(SUBMIT)]).propose(told())
    assert bench.api.answered() == 4
    assert len(bench.workshop.calls) == 2


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ([Turn(status=429, error="rate_limit_error")], "rate limit"),
        ([Turn(status=529, error="overloaded_error")], "overloaded"),
        ([Turn(status=401, error="authentication_error")], "does not accept the key"),
        ([Turn(status=404, error="not_found_error", says="model: x")], "does not know the model"),
        ([Turn(status=400, error="invalid_request_error", says="prompt is too long: 1 > 0")], "too long"),
        ([Turn(stop="model_context_window_exceeded")], "too long"),
        ([Turn(stop="refusal")], "refused"),
        ([Turn(blocks=(text("Done!"),))], "without handing anything in"),
        ([calls(use("read_file", path="kernel.cpp"))], "answers and nothing was handed in"),
        ([calls(EDIT, cut=3)], "connection broke"),
        ([calls(EDIT, broken_json=True)], "connection broke"),
    ],
)
def test_every_other_end_is_a_failure_with_its_reason(bench: Bench, script: list[Turn], says: str) -> None:
    with pytest.raises(MindFailed, match=says):
        bench.mind(script, turns=5).propose(told())
    assert says.split()[-1] in read(bench.workshop.transcript("x1"))[-1]["what"]
    assert bench.workshop.scraps() == []


def test_a_broken_answer_is_asked_for_again_and_paid_for(bench: Bench) -> None:
    bench.mind([calls(EDIT, cut=3), calls(EDIT, broken_json=True), calls(EDIT), calls(SUBMIT)]).propose(told())
    assert [call.number for call in bench.workshop.calls] == [1, 2, 3, 4]
    assert bench.workshop.calls[0].input_tokens == 1000
    assert next(line["kind"] for line in read(bench.workshop.transcript("x1"))) == "broken"


def test_it_is_reminded_when_it_stops_early(bench: Bench) -> None:
    bench.mind([Turn(blocks=(text("I am done."),)), calls(EDIT), calls(SUBMIT)]).propose(told())
    assert "submit_plan" in bench.api.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "means", [Means(duty="x1", dollars=0.09), Means(duty="x1", tokens=9_000), Means(duty="x1", calls=2)]
)
def test_it_stops_before_it_overspends(bench: Bench, means: Means) -> None:
    with pytest.raises(MindFailed, match="before it overspends"):
        bench.mind([calls(use("read_file", path="kernel.cpp"))]).propose(told(means=means))
    calls_made = bench.workshop.calls
    assert calls_made
    assert sum(call.dollars for call in calls_made) <= (means.dollars or 1.0)
    assert sum(call.tokens for call in calls_made) <= (means.tokens or 10**6)
    assert len(calls_made) <= (means.calls or 100)
    for request in bench.api.requests:
        assert request["max_tokens"] * 20.0 / 1e6 <= (means.dollars or 1.0)


def test_all_that_belongs_to_one_duty_is_paid_from_one_allowance(bench: Bench) -> None:
    def script(request: Request) -> Turn:
        repairs = any(tool["name"] == "repaired" for tool in request["tools"])
        return calls(use("check") if repairs else EDIT, *([] if repairs else [SUBMIT]))

    mind = bench.mind(script)
    means = Means(duty="x1", calls=2)
    proposal = mind.propose(told(means=means))
    mind.repair(told(means=means), proposal, "expected ';'")
    assert mind.repair(told(means=means), proposal, "expected ';'") is None
    assert len(bench.workshop.calls) == 2
    mind.propose(told(means=Means(duty="x2", calls=1)))
    assert len(bench.workshop.calls) == 3


def test_a_lost_duty_is_gone_on_from_without_paying_twice(bench: Bench) -> None:
    script = [calls(EDIT), calls(use("check")), calls(SUBMIT)]
    mind = bench.mind(lambda request: script[sum(m["role"] == "assistant" for m in request["messages"])], turns=2)
    with pytest.raises(MindFailed):
        mind.propose(told())
    bench.workshop.forget()
    proposal = bench.again().propose(told(means=Means(duty="x2", lost=("x1",))))
    assert proposal.variants[0].files == {"kernel.cpp": SOURCE.replace("1;", "3;", 1)}
    assert bench.api.answered() == 3
    assert [(call.duty, call.number) for call in bench.workshop.calls] == [("x1", 1), ("x1", 2), ("x2", 1)]
    assert bench.workshop.checked == []
    kinds = [line["kind"] for line in read(bench.workshop.transcript("x2"))]
    assert kinds == ["again", "again", "did", "call"]


def test_a_record_with_a_torn_end_is_read_up_to_it(bench: Bench) -> None:
    bench.mind([calls(EDIT, SUBMIT)]).propose(told())
    record = bench.workshop.transcript("x1")
    record.write_bytes(record.read_bytes() + b'{"kind": "call", "dig')
    bench.again().propose(told(means=Means(duty="x2", lost=("x1",))))
    assert bench.api.answered() == 1


def test_another_question_is_asked_afresh(bench: Bench) -> None:
    bench.mind([calls(EDIT, SUBMIT)]).propose(told())
    bench.again().propose(told(means=Means(duty="x2", lost=("x1",)), refused=("no good",)))
    assert bench.api.answered() == 2


def test_a_search_has_the_laws_domains_and_brings_only_what_it_found(bench: Bench) -> None:
    law = told().law.model_copy(update={"search_domains": ("docs.nvidia.com", "arxiv.org"), "search_uses": 3})
    found = {"technique": "tiling", "category": "memory", "why": "because"}

    def report(url: str) -> Turn:
        return calls(use("report_search", **found, sources=[{"title": "mine", "locator": url}]))

    script = [
        Turn(
            blocks=(*searched("tiling", ("Guide", DOCS)), text("see", ("Paper", "https://arxiv.org/abs/1"))),
            stop="pause_turn",
        ),
        report("https://docs.nvidia.com/never-returned"),
        report("https://evil.example/x"),
        report(DOCS),
    ]
    report_made = bench.mind(script).research(told(law=law, means=Means(duty="s7")), "s7")
    tool = next(tool for tool in bench.api.requests[0]["tools"] if tool["name"] == "web_search")
    assert (tool["allowed_domains"], tool["max_uses"]) == (list(law.search_domains), 3)
    assert report_made.id == "s7"
    assert report_made.queries == ("tiling",)
    assert [(s.title, s.locator) for s in report_made.sources] == [
        ("Guide", DOCS),
        ("Paper", "https://arxiv.org/abs/1"),
    ]
    assert bench.workshop.calls[0].searches == 1
    assert bench.workshop.calls[0].dollars == pytest.approx(EACH + SEARCH_DOLLARS)
    assert "no search of yours" in _plain(bench.api.requests[2]["messages"][-1]["content"][0]["content"])
    assert "not in an allowed domain" in _plain(bench.api.requests[3]["messages"][-1]["content"][0]["content"])


@pytest.mark.parametrize(
    ("means", "uses"),
    [(Means(duty="s7"), 5), (Means(duty="s7", dollars=0.4), 2), (Means(duty="s7", tokens=120_000), 4)],
)
def test_a_search_does_no_more_than_its_allowance_pays_for(bench: Bench, means: Means, uses: int) -> None:
    found = {"technique": "tiling", "category": "memory", "why": "because"}
    report = use("report_search", **found, sources=[{"title": "mine", "locator": DOCS}])
    script = [Turn(blocks=(*searched("tiling", ("Guide", DOCS)), report), stop="tool_use")]
    bench.mind(script).research(told(means=means), "s7")
    assert next(tool for tool in bench.api.requests[0]["tools"] if tool["name"] == "web_search")["max_uses"] == uses


def test_each_specialist_speaks_with_its_own_voice(bench: Bench) -> None:
    own = {name: {"model": "claude-haiku-4-5"} for name in ("researcher", "merger", "inspector")}
    ask = use("consult", specialist="inspector", question="what is special?")

    def script(request: Request) -> Turn:
        if request["model"] == "claude-haiku-4-5":
            return Turn(blocks=(text("rows are few"),))
        return calls(ask) if len(request["messages"]) == 1 else calls(EDIT, SUBMIT)

    bench.mind(script, specialists=own).propose(told())
    asked = [request["model"] for request in bench.api.requests]
    assert asked == ["claude-opus-5-5", "claude-haiku-4-5", "claude-opus-5-5"]
    assert "inspector" in bench.api.requests[1]["system"]
    assert "tools" not in bench.api.requests[1] or bench.api.requests[1]["tools"] == []
    assert bench.results[0] == "rows are few"


def test_a_recheck_and_research_bring_their_answers(bench: Bench) -> None:
    duty = Recheck(id="k1", experiment="x1", technique="t", base="b" * 40)
    line = {"what": "alignment", "card": "16 bytes", "seen": "4 bytes", "holds": False}
    mind = bench.mind([calls(use("report_check", compared=[line], suspect="alignment"))])
    report = mind.recheck(told(means=Means(duty="k1")), duty)
    assert (report.id, report.technique, report.closes) == ("k1", "t", False)
    record = Chronicle(task="t", language="cpp", numerics="reference", floors={"cpu:0": 0.02}, threshold=0.01)
    insight = {"what": "tiles help", "why": "locality", "next": "larger tiles"}
    reader = bench.mind([calls(use("report_insights", insights=[insight]))])
    assert reader.reflect(record, "r1").insights[0].next == "larger tiles"
    assert [tool["name"] for tool in bench.api.requests[0]["tools"]] == ["report_insights"]
    assert SOURCE not in json.dumps(bench.api.requests[0])


def test_a_merge_is_resolved_or_given_up(bench: Bench) -> None:
    duty = ResolveMerge(
        id="g1",
        experiment="x1",
        base="b",
        candidate="c",
        main="m",
        files=("kernel.cpp",),
        plan=Plan.model_validate(PLAN),
    )
    merge = Merge(duty=duty, briefing=told(means=Means(duty="g1")), base={}, theirs={}, main_diff="-a", their_diff="+b")
    done = bench.mind([calls(EDIT), calls(use("merged", how="both"))]).resolve(merge)
    assert (done.how, list(done.files)) == ("both", ["kernel.cpp"])
    with pytest.raises(CannotResolve, match="cannot be"):
        bench.mind([calls(use("give_up", why="it cannot be"))]).resolve(merge)
    with pytest.raises(CannotResolve, match="refused"):
        bench.mind([Turn(stop="refusal")]).resolve(merge)


def test_a_repair_starts_from_what_failed(bench: Bench) -> None:
    first = Proposal(plan=Plan.model_validate(PLAN), variants=(Variant(files={"kernel.cpp": "int broken\n"}),))
    mend = use("edit_file", path="kernel.cpp", old="int broken", new="int whole;")
    mended = bench.mind([calls(mend), calls(use("repaired", how="a semicolon"))]).repair(told(), first, "expected ';'")
    assert mended is not None
    assert mended.variants[0].files == {"kernel.cpp": "int whole;\n"}
    assert bench.mind([Turn(stop="refusal")]).repair(told(), first, "expected ';'") is None


def test_recorded_conversations_answer_without_key_and_money(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.mind([calls(EDIT), calls(SUBMIT)]).propose(told())
    bench.workshop.forget()
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    options = AnthropicOptions(replay=bench.workshop.transcript("x1").parent)
    check_mind("anthropic", options.model_dump(exclude_defaults=True))
    replayed = AnthropicMind(options, bench.workshop)
    means = Means(duty="x9")
    assert replayed.propose(told(means=means)) == first
    assert bench.api.answered() == 2
    assert [call.dollars for call in bench.workshop.calls] == [0.0, 0.0]
    with pytest.raises(MindFailed, match="not on record"):
        replayed.propose(told(means=Means(duty="x10"), refused=("something else",)))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "ANTHROPIC_API_KEY is not set"),
        ({"model": "claude-unheard-of"}, "price of model 'claude-unheard-of' is not known"),
        ({"specialists": {"researcher": {"model": "claude-unheard-of"}}}, "claude-unheard-of"),
        ({"specialists": {"plumber": {}}}, "specialists.plumber"),
        ({"effort": "heroic"}, "effort"),
        ({"depth": 3}, "depth"),
        ({"replay": "/no/such/folder"}, "no folder of transcripts"),
    ],
)
def test_what_is_missing_is_said_before_a_campaign(
    options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnknownMind, match=re.escape(says)):
        check_mind("anthropic", options)


def test_a_price_that_is_given_makes_a_model_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS[0], KEY)
    price = {"input": 1.0, "output": 2.0, "cache_write": 1.0, "cache_read": 0.1}
    check_mind("anthropic", {"model": "mine", "prices": {"mine": price}})
    assert Usage(input=10**6, output=10**6).dollars(Price.model_validate(price)) == pytest.approx(3.0)


def test_a_long_request_has_its_own_price() -> None:
    short, long = Usage(input=100_000, output=0), Usage(input=100_001, output=0)
    price = TABLE["claude-haiku-5-5"]
    assert long.dollars(price) == pytest.approx(5 * short.dollars(price), rel=1e-3)


def test_nobody_imports_the_sdk_before_the_mind_is_made() -> None:
    look = "import sys, team.cli, team.report.status, team.console; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"


def test_no_prompt_holds_a_number_of_its_own() -> None:
    """Whatever number a model reads comes from the law or from the ledger: the texts themselves have no digit."""
    for path in (*Path(conversations.__file__).parent.glob("*.py"), Path(specialists.__file__)):
        tree = ast.parse(path.read_text())
        formats = {id(part) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) and node.format_spec
                   for part in ast.walk(node.format_spec)}  # fmt: skip
        texts_in = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                    and id(n) not in formats]  # fmt: skip
        assert texts_in
        assert [text for text in texts_in if re.search(r"\d", text)] == []
    rules = conversations.web_rules(Policy(search_domains=("only.example",)), 789)
    assert "789" in rules
    assert "only.example" in rules
