"""Where a model hands in its answer: what is taken is complete and typed; what is not is sent back with the reason."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from pydantic import Field

from protocol.messages import Briefing, Compared, Insight, Message, Parameter, Plan, Proposal, Source, Variant
from roles.minds.anthropic.pad import Pad, Wrong
from roles.minds.anthropic.tools import HowInput, PlanInput, Tool, VariantInput, WhyInput, make

_TAKEN = "taken"
_MOST = 8


class Box(Protocol):
    """Anything that an answer is handed in to."""

    @property
    def is_full(self) -> bool:
        """Whether there is an answer."""
        ...

    def tools(self) -> list[Tool]:
        """The tools that hand one in."""
        ...


class Found(Message):
    """What a search brought."""

    sources: tuple[Source, ...] = Field(min_length=1, description="title and URL of results of your searches")
    technique: str = Field(min_length=1, description="name of a technique card, or a short slug")
    category: str = Field(min_length=1)
    why: str = Field(min_length=1, description="why it applies to the source as it is")


class Checked(Message):
    """What a re-check compared."""

    compared: tuple[Compared, ...] = Field(min_length=1)
    suspect: str = Field(default="", description="an orthogonal fault that explains the regression; empty: none")


class Shown(Message):
    """What the record shows."""

    insights: tuple[Insight, ...] = Field(min_length=1)


Answer = TypeVar("Answer", bound=Message)


class Once(Generic[Answer]):
    """Takes one answer of one type."""

    def __init__(
        self, kind: type[Answer], name: str, about: str, refusal: Callable[[Answer], str] = lambda answer: ""
    ) -> None:
        self._kind, self._name, self._about, self._refusal = kind, name, about, refusal
        self._value: Answer | None = None

    @property
    def is_full(self) -> bool:
        """Whether there is an answer."""
        return self._value is not None

    def value(self) -> Answer:
        """The answer."""
        assert self._value is not None
        return self._value

    def tools(self) -> list[Tool]:
        """The one tool."""
        return [make(self._name, self._about, self._kind, self._take)]

    def _take(self, answer: Answer) -> str:
        if why := self._refusal(answer):
            raise Wrong(why)
        self._value = answer
        return _TAKEN


class Plans:
    """Takes a plan with the variants that were saved, or with the files as they are."""

    def __init__(self, pad: Pad, briefing: Briefing) -> None:
        self._pad, self._most = pad, min(briefing.max_variants, _MOST)
        self._variants: list[Variant] = []
        self._plan: PlanInput | None = None
        self.nothing: WhyInput | None = None

    @property
    def is_full(self) -> bool:
        """Whether there is a plan, or the reason why there is none."""
        return self._plan is not None or self.nothing is not None

    def tools(self) -> list[Tool]:
        """Saving a variant, handing in, giving up."""
        save = f"Save the files as they are as one of at most {self._most} parameter settings of your one change."
        return [
            make(
                "submit_plan", "Hand in your change with its plan. This ends the conversation.", PlanInput, self._take
            ),
            make("save_variant", save, VariantInput, self._save),
            make(
                "give_up", "Say why you have no admissible change. This ends the conversation.", WhyInput, self._leave
            ),
        ]

    def proposal(self) -> Proposal:
        """What was handed in."""
        assert self._plan is not None
        told = self._plan.model_dump()
        parameters: dict[str, Parameter] = told.pop("parameters")
        last = Variant(parameters=parameters, files=self._pad.changed) if self._pad.changed else None
        saved = [each for each in self._variants if last is None or each.files != last.files]
        variants = (*([last] if last else []), *saved)[: self._most]
        return Proposal(plan=Plan.model_validate(told), variants=variants)

    def _take(self, plan: PlanInput) -> str:
        if not self._pad.changed and not self._variants:
            raise Wrong("no editable file is changed")
        self._plan = plan
        return _TAKEN

    def _save(self, asked: VariantInput) -> str:
        if not self._pad.changed:
            raise Wrong("no editable file is changed")
        if len(self._variants) >= self._most:
            raise Wrong(f"{self._most} variants are saved already")
        self._variants.append(Variant(parameters=asked.parameters, files=self._pad.changed))
        return f"{len(self._variants)} of at most {self._most} saved"

    def _leave(self, asked: WhyInput) -> str:
        self.nothing = asked
        return _TAKEN


class Done:
    """Takes the files as they are on the pad."""

    def __init__(self, pad: Pad, name: str, about: str) -> None:
        self._pad, self._name, self._about = pad, name, about
        self.how, self.why_not = "", ""

    @property
    def is_full(self) -> bool:
        """Whether it is done, or cannot be."""
        return bool(self.how or self.why_not)

    def tools(self) -> list[Tool]:
        """Handing in and giving up."""
        return [
            make(self._name, f"{self._about} This ends the conversation.", HowInput, self._take),
            make("give_up", "Say why it cannot be done. This ends the conversation.", WhyInput, self._leave),
        ]

    def _take(self, asked: HowInput) -> str:
        if not self._pad.changed:
            raise Wrong("no editable file is changed")
        self.how = asked.how
        return _TAKEN

    def _leave(self, asked: WhyInput) -> str:
        self.why_not = asked.why
        return _TAKEN
