"""A Messages API on loopback that answers from a script: real HTTP, server-sent events, and every way to fail.

A script is a list of turns, the last of which is repeated, or a function from a request to its turn.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Request = dict[str, Any]
USAGE = {"input_tokens": 1000, "output_tokens": 100, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 50}


@dataclass(frozen=True)
class Turn:
    """One answer. ``status`` other than 200 is an error; ``cut`` breaks the stream after that many events."""

    blocks: tuple[Block, ...] = ()
    stop: str = "end_turn"
    status: int = 200
    error: str = "api_error"
    says: str = "no"
    cut: int | None = None
    broken_json: bool = False
    usage: dict[str, Any] = field(default_factory=lambda: dict(USAGE))


def text(words: str, *cited: tuple[str, str]) -> Block:
    """Words, with citations of (title, url)."""
    citations = [
        {"type": "web_search_result_location", "cited_text": "c", "encrypted_index": "e", "title": title, "url": url}
        for title, url in cited
    ]
    return {"type": "text", "text": words, "citations": citations}


def use(name: str, /, **values: Any) -> Block:
    """A call of a tool."""
    return {
        "type": "tool_use",
        "id": f"toolu_{name}_{abs(hash(json.dumps(values, sort_keys=True))) % 10**8}",
        "name": name,
        "input": values,
    }


def calls(*blocks: Block, **told: Any) -> Turn:
    """An answer that calls tools."""
    return Turn(blocks=blocks, stop="tool_use", **told)


def searched(query: str, *found: tuple[str, str]) -> tuple[Block, Block]:
    """A search that the API did: its query, and its results as (title, url)."""
    results = [
        {"type": "web_search_result", "title": title, "url": url, "encrypted_content": "x", "page_age": None}
        for title, url in found
    ]
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": query}}
    return asked, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": results}


class Api:
    """What the server was asked, and what it says next."""

    def __init__(self, script: list[Turn] | Callable[[Request], Turn]) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def next(self, request: Request, headers: dict[str, str]) -> Turn:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            if callable(self._script):
                return self._script(request)
            return self._script[min(len(self.requests), len(self._script)) - 1]

    def answered(self) -> int:
        """Requests so far."""
        return len(self.requests)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: Api

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = self.api.next(request, {name.lower(): value for name, value in self.headers.items()})
        if turn.status != 200:
            self._error(turn)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events(turn, request["model"])):
            if number == turn.cut:
                self.close_connection = True
                return
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _error(self, turn: Turn) -> None:
        data = json.dumps({"type": "error", "error": {"type": turn.error, "message": turn.says}}).encode()
        self.send_response(turn.status)
        self.send_header("content-type", "application/json")
        self.send_header("retry-after-ms", "1")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def events(turn: Turn, model: str) -> Iterator[dict[str, Any]]:
    """The events of one streamed answer."""
    start = {**turn.usage, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": start}}
    for index, block in enumerate(turn.blocks):
        yield from _block(index, block, turn.broken_json)
    delta = {"stop_reason": turn.stop, "stop_sequence": None}
    yield {
        "type": "message_delta",
        "delta": delta,
        "usage": {"output_tokens": turn.usage["output_tokens"], **_searches(turn)},
    }
    yield {"type": "message_stop"}


def _searches(turn: Turn) -> dict[str, Any]:
    times = sum(block["type"] == "server_tool_use" for block in turn.blocks)
    return {"server_tool_use": {"web_search_requests": times, "web_fetch_requests": 0}} if times else {}


def _block(index: int, block: Block, broken: bool) -> Iterator[dict[str, Any]]:
    first, deltas = _parts(block, broken)
    yield {"type": "content_block_start", "index": index, "content_block": first}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _parts(block: Block, broken: bool) -> tuple[Block, list[Block]]:
    if block["type"] == "text":
        told = [{"type": "text_delta", "text": block["text"]}]
        return {"type": "text", "text": ""}, told + [
            {"type": "citations_delta", "citation": c} for c in block["citations"]
        ]
    if block["type"] in ("tool_use", "server_tool_use"):
        written = '{"x": }}' if broken else json.dumps(block["input"])
        half = len(written) // 2
        parts = [written] if broken else [written[:half], written[half:]]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return block, []


@contextmanager
def serve(script: list[Turn] | Callable[[Request], Turn]) -> Iterator[Api]:
    """A server for the length of a test."""
    api = Api(script)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
