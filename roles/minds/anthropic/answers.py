"""What the bytes of a streamed answer say about its cost."""

import json
from collections.abc import Iterator
from typing import Any

from roles.minds.anthropic.prices import Usage

_BYTES_PER_TOKEN = 4.0
"""Of a broken stream, whose last count never came; its framing makes this an estimate that is too high."""


def is_whole(answer: bytes) -> bool:
    """Whether the stream came to its end."""
    return any(event.get("type") == "message_stop" for event in events(answer))


def usage_of(answer: bytes) -> Usage | None:
    """Tokens of an answer, whole or broken; None when nothing of it came."""
    counts: dict[str, Any] = {}
    whole = False
    for event in events(answer):
        if event.get("type") == "message_start":
            counts |= _given(event["message"]["usage"])
        elif event.get("type") == "message_delta":
            counts |= _given(event["usage"])
            whole = True
    if not counts:
        return None
    told = int(counts.get("output_tokens", 0))
    return Usage(
        input=int(counts.get("input_tokens", 0)),
        output=told if whole else max(told, int(len(answer) / _BYTES_PER_TOKEN)),
        cache_write=int(counts.get("cache_creation_input_tokens", 0)),
        cache_read=int(counts.get("cache_read_input_tokens", 0)),
        searches=int((counts.get("server_tool_use") or {}).get("web_search_requests", 0)),
    )


def events(answer: bytes) -> Iterator[dict[str, Any]]:
    """The data of each server-sent event; a torn last one is left out."""
    for line in answer.split(b"\n"):
        if line.startswith(b"data:"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def _given(usage: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in usage.items() if value is not None}
