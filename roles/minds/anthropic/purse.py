"""What one duty may still cost: no request is sent whose answer could pass what is left."""

from protocol.messages import Means, ModelCall
from roles.minds.anthropic.prices import SEARCH_DOLLARS, Price

LEAST_ANSWER = 1024
"""Tokens without which no answer is worth asking for."""
_BYTES_PER_TOKEN = 2.0
"""Fewer than any text has, so that a request is never estimated too short."""
_FOUND_TOKENS = 15_000
"""Input that one search may add while its request is answered."""
_MILLION = 1e6


class Spent(Exception):
    """The duty's allowance has no room for another answer. The text names the budget."""


class Purse:
    """The allowance of one duty, and what was taken from it."""

    def __init__(self, means: Means) -> None:
        self.means = means
        self.dollars, self.tokens, self.calls = 0.0, 0, 0

    def pay(self, call: ModelCall) -> None:
        """An answer came."""
        self.dollars += call.dollars
        self.tokens += call.tokens
        self.calls += 1

    def searches(self, price: Price, most: int) -> int:
        """How many searches the allowance pays for when half of it is kept for what follows: from one to ``most``."""
        room = [most]
        if self.means.dollars is not None:
            each = _FOUND_TOKENS * max(price.input, price.cache_write) / _MILLION + SEARCH_DOLLARS
            room.append(int((self.means.dollars - self.dollars) / 2 / each))
        if self.means.tokens is not None:
            room.append((self.means.tokens - self.tokens) // 2 // _FOUND_TOKENS)
        return max(1, min(room))

    def answer_tokens(self, price: Price, known: int, fresh_bytes: int, searches: int, most: int) -> int:
        """How long an answer may be, at most ``most`` tokens; ``Spent`` when less than a useful one is left.

        ``known``: input tokens that the API counted already; ``fresh_bytes``: size of what came since.
        """
        reading = known + int(fresh_bytes / _BYTES_PER_TOKEN) + searches * _FOUND_TOKENS
        room = [float(most), self._by_dollars(price, reading, searches)]
        if self.means.tokens is not None:
            room.append(self.means.tokens - self.tokens - reading)
        if self.means.calls is not None and self.calls >= self.means.calls:
            raise Spent(f"its {self.means.calls} answers are used up")
        least = int(min(room))
        if least < LEAST_ANSWER:
            raise Spent(f"what is left of its allowance ({self._left()}) does not pay for another answer")
        return least

    def _by_dollars(self, price: Price, reading: int, searches: int) -> float:
        """Tokens of an answer that the money pays for when nothing of the input is in a cache yet."""
        if self.means.dollars is None:
            return float("inf")
        now = price.at(reading)
        dearest = max(now.input, now.cache_write)
        left = self.means.dollars - self.dollars - reading * dearest / _MILLION - searches * SEARCH_DOLLARS
        return left * _MILLION / now.output if now.output else float("inf") if left >= 0.0 else 0.0

    def _left(self) -> str:
        parts: list[str] = []
        if self.means.dollars is not None:
            parts.append(f"${max(0.0, self.means.dollars - self.dollars):.4f}")
        if self.means.tokens is not None:
            parts.append(f"{max(0, self.means.tokens - self.tokens):,} tokens")
        return " and ".join(parts)
