"""The key of the API: an environment variable of the process that calls it, and of no other.

The SDK's client reads it in the agent's process. Judges, runners and compilers start without it.
"""

import os
from collections.abc import Mapping

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Variables that may hold the key: one is enough."""


class NoKey(Exception):
    """There is no key."""

    def __init__(self) -> None:
        super().__init__(f"The mind 'anthropic' needs a key for its API, and {KEYS[0]} is not set.")
        self.remedy = f"Set it (export {KEYS[0]}=...), or let the built-in mind think: --agents explorer:catalog"


def check_key() -> None:
    """``NoKey`` unless a variable holds a key."""
    if not any(os.environ.get(name) for name in KEYS):
        raise NoKey


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that calls no API."""
    return {name: value for name, value in environment.items() if name not in KEYS}
