"""What models cost, with the date on which the table was read from the public price list."""

from dataclasses import dataclass

from pydantic import Field

from protocol.messages import Message

AS_OF = "2026-10-24"
SOURCE = "https://platform.claude.com/docs/en/about-claude/pricing"
SEARCH_DOLLARS = 0.01
"""US dollars of one search of the web; what it finds is billed as input besides."""
_MILLION = 1e6


class Price(Message):
    """US dollars per million tokens. ``above`` holds for requests whose whole input is longer than ``up_to`` tokens."""

    input: float = Field(ge=0.0)
    output: float = Field(ge=0.0)
    cache_write: float = Field(ge=0.0, description="kept for five minutes")
    cache_read: float = Field(ge=0.0)
    up_to: int | None = Field(default=None, ge=1)
    above: "Price | None" = None

    def at(self, input_tokens: int) -> "Price":
        """The price of a request with an input of this many tokens, cached ones included."""
        longer = self.up_to is not None and self.above is not None and input_tokens > self.up_to
        return self.above if longer and self.above else self


def _price(base: float, output: float, read: float = 0.1) -> Price:
    """Writing to the cache costs 1.25 times the input; reading ``read`` times."""
    return Price(input=base, output=output, cache_write=1.25 * base, cache_read=read * base)


_HAIKU = _price(0.10, 0.50).model_copy(update={"up_to": 100_000, "above": _price(0.50, 2.50)})
TABLE: dict[str, Price] = {
    "claude-fable-5-1": _price(10.0, 50.0, 0.025),
    "claude-fable-5": _price(10.0, 50.0),
    "claude-opus-5-5": _price(4.0, 20.0, 0.05),
    "claude-opus-5": _price(5.0, 25.0),
    "claude-opus-4-8": _price(5.0, 25.0),
    "claude-opus-4-7": _price(5.0, 25.0),
    "claude-opus-4-6": _price(5.0, 25.0),
    "claude-opus-4-5": _price(5.0, 25.0),
    "claude-sonnet-5-5": _price(2.0, 10.0, 0.05),
    "claude-sonnet-5": _price(2.0, 10.0),
    "claude-sonnet-4-6": _price(3.0, 15.0),
    "claude-sonnet-4-5": _price(3.0, 15.0),
    "claude-haiku-5-5": _HAIKU,
    "claude-haiku-4-5": _price(1.0, 5.0),
}


FREE = _price(0.0, 0.0)
"""Of answers that are on record already."""


class UnknownPrice(Exception):
    """Nobody said what a model costs, so no budget could be kept."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The price of model '{model}' is not known (table of {AS_OF}): give it in the mind's options as "
            f"prices.{model} = {{ input = ..., output = ..., cache_write = ..., cache_read = ... }}."
        )


def price_of(model: str, given: dict[str, Price]) -> Price:
    """What was given, else the table's row; ``UnknownPrice`` when there is neither."""
    found = given.get(model) or TABLE.get(model)
    if found is None:
        raise UnknownPrice(model)
    return found


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer as the API counts them, and its searches."""

    input: int
    output: int
    cache_write: int = 0
    cache_read: int = 0
    searches: int = 0

    @property
    def whole_input(self) -> int:
        """All tokens of the request."""
        return self.input + self.cache_write + self.cache_read

    def dollars(self, price: Price) -> float:
        """What the answer cost."""
        now = price.at(self.whole_input)
        tokens = (
            self.input * now.input
            + self.output * now.output
            + self.cache_write * now.cache_write
            + self.cache_read * now.cache_read
        )
        return tokens / _MILLION + self.searches * SEARCH_DOLLARS
