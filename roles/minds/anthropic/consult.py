"""Asking a specialist: one question to a clean context, answered in words, paid from the same purse."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from protocol.messages import Briefing
from roles.minds.anthropic.conversation import Conversation, Ended, Setting, Tool
from roles.minds.anthropic.options import AnthropicOptions
from roles.minds.anthropic.pad import Wrong
from roles.minds.anthropic.tools import make
from roles.prompts.conversations import question_text, specialist_text
from roles.specialists import SPECIALISTS


class ConsultInput(BaseModel):
    """Whom to ask what."""

    model_config = ConfigDict(extra="forbid")
    specialist: Literal["profiler", "inspector"] = Field(
        description="profiler: the bottleneck that the profile shows; inspector: what is special about the workloads"
    )
    question: str = Field(min_length=1)


def consult_tool(talk: Conversation, options: AnthropicOptions, briefing: Briefing) -> Tool:
    """The tool that asks one of them."""

    def consult(asked: ConsultInput) -> str:
        one = SPECIALISTS[asked.specialist]
        setting = Setting(options.voice(one.name), specialist_text(one), (), (), lambda: True)
        try:
            return talk.hold(setting, question_text(one, briefing, asked.question)) or "no words came back"
        except Ended as ended:
            raise Wrong(f"the {one.name} gave no answer: {ended.why}") from ended

    return make("consult", "Ask a specialist who sees source, workloads or profile.", ConsultInput, consult)
