"""The record of what was said to a model and answered, one file for each duty: transcript, and memory of a killed mind.

Each line is JSON and on disk before the answer is used. A duty that takes up a lost one finds its answers here by what
was asked, so that nothing is paid for twice. Headers, and with them keys, are never recorded.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from protocol.messages import ModelCall
from roles.minds.anthropic.answers import is_whole, usage_of
from roles.minds.anthropic.prices import Price

Line = dict[str, Any]
_PART_OF_THE_QUESTION = ("model", "system", "tools", "messages", "output_config")


class Tape:
    """The file of one duty, and those of the lost duties that it goes on from.

    ``owed`` are the calls of those: whoever keeps the accounts must hear of each, for the mind that made them may have
    been killed before it could tell.
    """

    def __init__(self, path: Path, duty: str, prices: Mapping[str, Price], earlier: Iterable[Path] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._duty, self._prices = path, duty, prices
        self._number = 0
        self._told: list[Any] = []
        self._last: Line | None = None
        self._asked: dict[str, list[Line]] = defaultdict(list)
        self._done: dict[str, str] = {}
        self.owed: list[ModelCall] = []
        for lost in earlier:
            self._take_up(lost)

    def _take_up(self, lost: Path) -> None:
        for line in read(lost):
            if line["kind"] == "call":
                self._asked[line["digest"]].append(line)
            if line["kind"] == "discarded":
                self._asked[line["digest"]].pop()
            if line["kind"] in ("call", "broken"):
                self.owed.append(ModelCall.model_validate(line["cost"]))
            if line["kind"] == "did":
                self._done[line["key"]] = line["result"]

    def recall(self, body: bytes) -> bytes | None:
        """The answer that a lost duty got to this very question; each is given once."""
        known = self._asked[digest_of(body)]
        if not known:
            return None
        self._last = line = known.pop(0)
        self._write({"kind": "again", "duty": line["cost"]["duty"], "number": line["cost"]["number"]})
        return line["answer"].encode()

    def keep(self, body: bytes, answer: bytes) -> ModelCall | None:
        """Record an answer, or what came of one before the connection broke; what it cost, None for nothing."""
        usage = usage_of(answer)
        if usage is None:
            return None
        self._number += 1
        asked = json.loads(body)
        call = ModelCall(
            duty=self._duty,
            number=self._number,
            model=asked["model"],
            input_tokens=usage.input,
            cache_write_tokens=usage.cache_write,
            cache_read_tokens=usage.cache_read,
            output_tokens=usage.output,
            searches=usage.searches,
            dollars=usage.dollars(self._prices[asked["model"]]),
        )
        line: Line = {
            "kind": "call" if is_whole(answer) else "broken",
            "digest": digest_of(body),
            **self._question(asked),
            "answer": answer.decode(errors="replace"),
            "cost": call.model_dump(mode="json"),
        }
        self._write(line)
        if line["kind"] == "call":
            self._asked[line["digest"]].append(line)  # a duty that is begun again, for its judge died, asks it again
            self._last = line
        return call

    def discard(self) -> None:
        """The last answer is of no use, though it is whole: it is not to be given again."""
        if self._last is not None and self._last in self._asked[self._last["digest"]]:
            self._asked[self._last["digest"]].remove(self._last)
            self._write({"kind": "discarded", "digest": self._last["digest"]})

    def _question(self, asked: Line) -> Line:
        """What is new in a question: the messages after those that the one before it held."""
        messages = asked.pop("messages", [])
        goes_on = bool(self._told) and messages[: len(self._told)] == self._told
        after = len(self._told) if goes_on else 0
        self._told = messages
        return {"after": after, "messages": messages[after:], **({} if goes_on else {"request": asked})}

    def once(self, what: str, key: str, do: Callable[[], str]) -> str:
        """The result that a lost duty got for this, else what ``do`` says now: the same question then follows it."""
        name = f"{what}:{hashlib.sha256(key.encode()).hexdigest()}"
        result = self._done.get(name)
        if result is None:
            result = self._done[name] = do()
        self._write({"kind": "did", "key": name, "result": result})
        return result

    def note(self, what: str) -> None:
        """Record how a conversation ended."""
        self._write({"kind": "note", "what": what})

    def _write(self, line: Line) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, (json.dumps(line) + "\n").encode())
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: Path) -> list[Line]:
    """The lines of a record. The last one may be torn: its writer was killed before anybody used what it says."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line]


def digest_of(body: bytes) -> str:
    """What makes a question the same question: not how long its answer may be."""
    asked = json.loads(body)
    part = {name: asked.get(name) for name in _PART_OF_THE_QUESTION}
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()
