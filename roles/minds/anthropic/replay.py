"""Recorded conversations in place of the API: each question gets the answer that it got once, for nothing."""

import json
from collections import defaultdict
from pathlib import Path

import httpx2

from roles.minds.anthropic.tape import digest_of, read

_UNKNOWN = {"type": "error", "error": {"type": "invalid_request_error", "message": "this question is not on record"}}


class Replay(httpx2.BaseTransport):
    """Answers from all transcripts below a folder; one that was recorded several times is given in that order."""

    def __init__(self, folder: Path) -> None:
        self._answers: dict[str, list[str]] = defaultdict(list)
        for path in sorted(folder.rglob("*.jsonl")):
            for line in read(path):
                if line["kind"] == "call":
                    self._answers[line["digest"]].append(line["answer"])

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The next recorded answer to this question; an error that names the lack when there is none."""
        known = self._answers[digest_of(request.read())]
        if not known:
            return httpx2.Response(400, headers={"content-type": "application/json"}, content=json.dumps(_UNKNOWN))
        stream = httpx2.ByteStream(known.pop(0).encode())
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)
