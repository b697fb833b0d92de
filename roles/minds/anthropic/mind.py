"""The mind: each duty is one conversation, paid from the duty's allowance and recorded in the duty's transcript.

Nothing is remembered between duties: the briefing, built from the ledger, is all that a conversation starts from.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from protocol.messages import (
    Briefing,
    Chronicle,
    Means,
    Merge,
    ModelCall,
    Proposal,
    Recheck,
    RecheckReport,
    ResearchReport,
    Resolution,
    SearchReport,
    Variant,
)
from roles.minds.anthropic import outbox
from roles.minds.anthropic.access import Recorder, client_for
from roles.minds.anthropic.consult import consult_tool
from roles.minds.anthropic.conversation import Conversation, Ended, Setting, Tool
from roles.minds.anthropic.options import AnthropicOptions
from roles.minds.anthropic.pad import Pad
from roles.minds.anthropic.purse import Purse
from roles.minds.anthropic.tape import Tape
from roles.minds.anthropic.tools import check_tool, code_tool, pad_tools, shelf_tools
from roles.minds.anthropic.web import Web
from roles.minds.mind import CannotResolve, MindFailed, NothingToPropose, Workshop
from roles.prompts import conversations, texts
from roles.specialists import MERGER, RESEARCHER, Specialist

Handed = TypeVar("Handed")


class AnthropicMind:
    """Asks a model for every duty. What it costs is counted in the ledger as it is spent, so no answer names money."""

    name = "anthropic"

    def __init__(self, options: AnthropicOptions, workshop: Workshop) -> None:
        self._options, self._workshop = options, workshop
        self._prices = {model: options.price(model) for model in options.models}
        self._purse = Purse(Means())
        self._recorder = Recorder(self._tape(Means()), self._count)
        self._client = client_for(options, self._recorder)

    def propose(self, briefing: Briefing) -> Proposal:
        """A conversation that ends with a plan, or with the reason why there is none."""
        pad = Pad(briefing.editable)
        box = outbox.Plans(pad, briefing)
        with self._at_work(briefing.means) as talk, self._workshop.laid_out(briefing.base) as folder:
            tools = [
                *pad_tools(pad, folder),
                check_tool(pad, self._workshop, briefing.base, self._recorder.tape),
                code_tool(pad, self._workshop, briefing, self._recorder.tape),
                *shelf_tools(briefing),
                consult_tool(talk, self._options, briefing),
                *box.tools(),
            ]
            self._hold(talk, self._as_agent(briefing, tools, box), texts.experiment_text(briefing))
        if box.nothing is not None:
            raise NothingToPropose(box.nothing.why, passed_over=box.nothing.passed_over)
        return box.proposal()

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """A conversation that starts from the failed files and what the compiler said."""
        pad = Pad({**briefing.editable, **proposal.variants[0].files}, briefing.editable)
        box = outbox.Done(pad, "repaired", "Hand in the mended files.")
        with self._at_work(briefing.means) as talk, self._workshop.laid_out(briefing.base) as folder:
            check = check_tool(pad, self._workshop, briefing.base, self._recorder.tape)
            tools = [*pad_tools(pad, folder), check, *box.tools()]
            try:
                talk.hold(self._as_agent(briefing, tools, box), texts.repair_text(briefing, proposal.plan, failure))
            except Ended:
                return None
        variant = Variant(parameters=proposal.variants[0].parameters, files=pad.changed)
        return Proposal(plan=proposal.plan, variants=(variant,)) if box.how and pad.changed else None

    def resolve(self, merge: Merge) -> Resolution:
        """A conversation of the merger, with main's files on the pad and both diffs."""
        pad = Pad(merge.briefing.editable)
        box = outbox.Done(pad, "merged", "Hand in the merged files, and say how both changes take effect.")
        with self._at_work(merge.briefing.means) as talk, self._workshop.laid_out(merge.briefing.base) as folder:
            check = check_tool(pad, self._workshop, merge.briefing.base, self._recorder.tape)
            tools = [*pad_tools(pad, folder), check, *box.tools()]
            try:
                talk.hold(self._as(MERGER, tools, box), texts.merge_text(merge))
            except Ended as ended:
                raise CannotResolve(ended.why) from ended
        if not box.how or not pad.changed:
            raise CannotResolve(box.why_not or "no file was changed")
        return Resolution(files=pad.changed, how=box.how)

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """A conversation of the researcher with the web at hand; its sources are those that a search returned."""
        with self._at_work(briefing.means) as talk:
            price = self._prices[self._options.voice(RESEARCHER.name).model]
            web = Web(briefing.law, self._purse.searches(price, briefing.law.search_uses))
            box = outbox.Once(outbox.Found, "report_search", "Report the technique that you chose.", web.refusal)
            setting = self._as(RESEARCHER, [*shelf_tools(briefing), *box.tools()], box)
            setting.server_tools, setting.searches, setting.seen = [web.tool()], web.uses, web.take_in
            rules = conversations.web_rules(briefing.law, web.uses)
            self._hold(talk, setting, f"{texts.search_text(briefing)}\n\n{rules}")
        found = box.value()
        return SearchReport(
            id=duty_id,
            queries=web.queries or (found.technique,),
            sources=web.sources(found.sources),
            technique=found.technique,
            category=found.category,
            why=found.why,
        )

    def recheck(self, briefing: Briefing, duty: Recheck) -> RecheckReport:
        """A conversation of the researcher on one technique that regressed."""
        box = outbox.Once(outbox.Checked, "report_check", "Report what you compared.")
        pad = Pad(briefing.editable)
        with self._at_work(briefing.means) as talk, self._workshop.laid_out(briefing.base) as folder:
            tools = [pad_tools(pad, folder)[0], *shelf_tools(briefing), *box.tools()]
            self._hold(talk, self._as(RESEARCHER, tools, box), texts.recheck_text(briefing, duty))
        told = box.value()
        return RecheckReport(
            id=duty.id,
            experiment=duty.experiment,
            technique=duty.technique,
            compared=told.compared,
            suspect=told.suspect,
        )

    def reflect(self, chronicle: Chronicle, duty_id: str) -> ResearchReport:
        """A conversation of the researcher that is given the record and no tool but its answer."""
        box = outbox.Once(outbox.Shown, "report_insights", "Report what the record shows.")
        with self._at_work(chronicle.means) as talk:
            self._hold(talk, self._as(RESEARCHER, box.tools(), box), texts.reflect_text(chronicle))
        return ResearchReport(id=duty_id, insights=box.value().insights)

    def _hold(self, talk: Conversation, setting: Setting, text: str) -> None:
        try:
            talk.hold(setting, text)
        except Ended as ended:
            raise MindFailed(f"no answer from {setting.voice.model}: {ended.why}") from ended

    def _as_agent(self, briefing: Briefing, tools: list[Tool], box: outbox.Box) -> Setting:
        return self._setting("", conversations.agent_text(briefing.role), tools, box)

    def _as(self, specialist: Specialist, tools: list[Tool], box: outbox.Box) -> Setting:
        return self._setting(specialist.name, conversations.specialist_text(specialist), tools, box)

    def _setting(self, name: str, system: str, tools: list[Tool], box: outbox.Box) -> Setting:
        ends = tuple(tool.name for tool in box.tools())
        return Setting(self._options.voice(name), system, tools, ends, lambda: box.is_full)

    @contextmanager
    def _at_work(self, means: Means) -> Iterator[Conversation]:
        """A conversation for one duty: the same purse and record for all that belong to it."""
        if means.duty != self._purse.means.duty or not means.duty:
            self._purse = Purse(means)
            self._recorder.tape = self._tape(means)
            for call in self._recorder.tape.owed:
                self._workshop.spent(call)
        yield Conversation(self._client, self._options, self._purse, self._recorder)

    def _tape(self, means: Means) -> Tape:
        lost = [self._workshop.transcript(duty) for duty in means.lost]
        return Tape(self._workshop.transcript(means.duty or "none"), means.duty, self._prices, lost)

    def _count(self, call: ModelCall) -> None:
        self._purse.pay(call)
        self._workshop.spent(call)
