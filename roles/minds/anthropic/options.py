"""What a campaign file says about an ``anthropic`` mind."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from protocol.messages import Message
from roles.minds.anthropic.prices import FREE, Price, price_of

Effort = Literal["low", "medium", "high", "xhigh", "max"]


class Voice(Message):
    """Which model speaks, and how much effort it puts into an answer."""

    model: str = Field(default="claude-opus-5-5", min_length=1, description="the model's id")
    effort: Effort | None = Field(default=None, description="None: the model's own default")


class AnthropicOptions(Voice):
    """The model of the agent itself, and of the specialists that it calls."""

    specialists: dict[Literal["researcher", "profiler", "inspector", "merger"], Voice] = Field(
        default_factory=dict, description="a specialist -> its own model and effort; default: those of the agent"
    )
    prices: dict[str, Price] = Field(
        default_factory=dict, description="a model -> its prices, for models that the table lacks or bills otherwise"
    )
    answer_tokens: int = Field(default=16_000, ge=1024, description="the most tokens of one answer, thinking included")
    turns: int = Field(default=24, ge=1, description="answers within one conversation before it is given up")
    retries: int = Field(default=5, ge=0, description="times that the SDK repeats a request that was turned away")
    seconds: float = Field(default=600.0, gt=0.0, description="how long one request may stay without a sign of life")
    replay: Path | None = Field(
        default=None, description="a folder of transcripts that answers in place of the API: no key, no money"
    )

    def voice(self, specialist: str = "") -> Voice:
        """Who speaks as this specialist; as the agent itself when none is named."""
        own = {name: voice for name, voice in self.specialists.items() if name == specialist}
        return own.get(specialist, Voice(model=self.model, effort=self.effort))  # type: ignore[call-overload]

    def price(self, model: str) -> Price:
        """What an answer of this model costs here; ``UnknownPrice`` when nobody said."""
        return FREE if self.replay else price_of(model, self.prices)

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that may be asked."""
        return tuple(dict.fromkeys((self.model, *(voice.model for voice in self.specialists.values()))))
