"""The way to the API: the SDK's client over a transport that records every answer and gives recorded ones again."""

import os
from collections.abc import Callable, Iterator

import anthropic
import httpx2

from protocol.messages import ModelCall
from roles.minds.anthropic.options import AnthropicOptions
from roles.minds.anthropic.replay import Replay
from roles.minds.anthropic.tape import Tape

_OK = 200


class Recorder:
    """Which record is written now, and who is told what each answer cost."""

    def __init__(self, tape: Tape, told: Callable[[ModelCall], None]) -> None:
        self.tape = tape
        self._told = told

    def keep(self, body: bytes, answer: bytes) -> None:
        """Record an answer and count its cost, before anybody uses it."""
        if call := self.tape.keep(body, answer):
            self._told(call)


class _Teed(httpx2.SyncByteStream):
    """A streamed answer that is recorded when it ends or breaks."""

    def __init__(self, recorder: Recorder, body: bytes, source: httpx2.SyncByteStream) -> None:
        self._recorder, self._body, self._source = recorder, body, source
        self._seen: list[bytes] = []
        self._kept = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._source:
            self._seen.append(chunk)
            yield chunk
        self._keep()

    def close(self) -> None:
        self._source.close()
        self._keep()

    def _keep(self) -> None:
        if not self._kept:
            self._kept = True
            self._recorder.keep(self._body, b"".join(self._seen))


class Recording(httpx2.BaseTransport):
    """Asks ``inner`` only what is not on record."""

    def __init__(self, recorder: Recorder, inner: httpx2.BaseTransport) -> None:
        self._recorder, self._inner = recorder, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The recorded answer to this very question, or what the API says."""
        body = request.read()
        known = self._recorder.tape.recall(body)
        if known is not None:
            return httpx2.Response(_OK, headers={"content-type": "text/event-stream"}, content=known)
        response = self._inner.handle_request(request)
        if response.status_code != _OK or not isinstance(response.stream, httpx2.SyncByteStream):
            return response
        teed = _Teed(self._recorder, body, response.stream)
        return httpx2.Response(_OK, headers=response.headers, stream=teed, extensions=response.extensions)

    def close(self) -> None:
        """Close the way to the API."""
        self._inner.close()


def _network() -> httpx2.BaseTransport:
    """The network, through the proxy that the environment names for it."""
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    local = os.environ.get("ANTHROPIC_BASE_URL", "https:").startswith("http:")
    return httpx2.HTTPTransport(proxy=None if local else proxy)


def client_for(options: AnthropicOptions, recorder: Recorder) -> anthropic.Anthropic:
    """The SDK's client, with its own retries. ``ANTHROPIC_BASE_URL`` and the key come from the environment."""
    inner = Replay(options.replay) if options.replay else _network()
    return anthropic.Anthropic(
        api_key="none" if options.replay else None,
        max_retries=options.retries,
        timeout=options.seconds,
        default_headers={"Accept-Encoding": "identity"},  # the record holds the answer's text as it was sent
        http_client=anthropic.DefaultHttpxClient(transport=Recording(recorder, inner)),
    )
