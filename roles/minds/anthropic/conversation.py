"""One conversation with a model: ask, run the tools that it calls, go on until somebody is satisfied or it has to end.

The SDK's tool runner does each turn; this loop decides whether there is another one. Every way in which it ends without
an answer has a sentence of its own.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import anthropic
import httpx2
from anthropic.lib.tools import BetaFunctionTool
from anthropic.types.beta import BetaMessage, BetaMessageParam, BetaToolUnionParam

from roles.minds.anthropic.access import Recorder
from roles.minds.anthropic.options import AnthropicOptions, Voice
from roles.minds.anthropic.purse import Purse, Spent

Tool = BetaFunctionTool[Any]
_BREAKS = 2  # broken answers that are asked for again within one conversation
_REMINDERS = 2  # times that a model which stops early is told to finish
_HTTP_OK = 200
_REMIND = "You stopped without an answer. Go on, and end with one of the tools that hand in an answer: {ends}."


class Ended(Exception):
    """A conversation that brought no answer. ``why`` says what happened."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _Broken(Exception):
    """The stream of one answer broke."""


@dataclass
class Setting:
    """What stays the same within a conversation: who is asked, with what at hand, and who satisfies it."""

    voice: Voice
    system: str
    tools: Sequence[Tool]
    ends: tuple[str, ...]
    answered: Callable[[], bool]
    server_tools: Sequence[BetaToolUnionParam] = ()
    searches: int = 0
    seen: Callable[[BetaMessage], None] = lambda message: None


class Conversation:
    """Speaks over one client, pays from one purse."""

    def __init__(
        self, client: anthropic.Anthropic, options: AnthropicOptions, purse: Purse, recorder: Recorder
    ) -> None:
        self._client, self._options, self._purse, self._recorder = client, options, purse, recorder

    def hold(self, setting: Setting, text: str) -> str:
        """Talk until ``setting.answered``; the last words. ``Ended`` says why there is no answer."""
        try:
            return self._hold(setting, text)
        except Ended as ended:
            self._recorder.tape.note(ended.why)
            raise

    def _hold(self, setting: Setting, text: str) -> str:
        messages: list[BetaMessageParam] = [{"role": "user", "content": text}]
        known, counted, reminders, breaks = 0, 0, 0, 0
        for _ in range(self._options.turns):
            fresh = len(json.dumps([setting.system, _sent(setting), messages[counted:]], default=_plain))
            try:
                most = self._purse.answer_tokens(
                    self._options.price(setting.voice.model),
                    known,
                    fresh,
                    setting.searches,
                    self._options.answer_tokens,
                )
                message, results = self._turn(setting, messages, most)
            except Spent as spent:
                raise Ended(f"stopped before it overspends: {spent}") from spent
            except _Broken as broken:
                breaks += 1
                if breaks > _BREAKS:
                    raise Ended(f"the connection broke {breaks} times in mid-answer: {broken}") from broken
                continue
            setting.seen(message)
            if setting.answered():
                return _words(message)
            messages.append(cast(BetaMessageParam, message.to_param()))
            usage = message.usage
            cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
            known, counted = usage.input_tokens + cached + usage.output_tokens, len(messages)
            if results is not None:
                messages.append(results)
            elif message.stop_reason != "pause_turn":
                reminders += 1
                self._may_go_on(setting, message, reminders)
                messages.append({"role": "user", "content": _REMIND.format(ends=", ".join(setting.ends))})
        raise Ended(f"{self._options.turns} answers and nothing was handed in")

    def _turn(
        self, setting: Setting, messages: list[BetaMessageParam], most: int
    ) -> tuple[BetaMessage, BetaMessageParam | None]:
        """One answer, and what its tools said; None when it called none."""
        runner = self._client.beta.messages.tool_runner(
            model=setting.voice.model,
            max_tokens=most,
            system=setting.system,
            messages=messages,
            tools=[*setting.tools, *setting.server_tools],
            output_config={"effort": setting.voice.effort} if setting.voice.effort else anthropic.omit,
            cache_control={"type": "ephemeral"},
            stream=True,
            thread=False,
            max_iterations=1,
        )
        try:
            stream = next(iter(runner))
            message = cast(BetaMessage, stream.get_final_message())
            if message.stop_reason is None:
                raise _Broken("the answer has no end")
            results = runner.generate_tool_call_response() if message.stop_reason == "tool_use" else None
        except ValueError as error:  # the input of a tool is no JSON
            self._recorder.tape.discard()
            raise _Broken(str(error)[:200]) from error
        except (httpx2.TransportError, anthropic.APIConnectionError) as error:
            raise _Broken(f"{type(error).__name__}: {error}"[:200]) from error
        except anthropic.APIStatusError as error:
            if error.status_code == _HTTP_OK:  # the API said so within a stream that had begun
                raise _Broken(str(error.type or error)[:200]) from error
            raise Ended(_refusal(error)) from error
        finally:
            runner.close()
        return message, results

    def _may_go_on(self, setting: Setting, message: BetaMessage, reminders: int) -> None:
        """``Ended`` for an answer after which it is no use to ask again."""
        if message.stop_reason == "refusal":
            raise Ended("the model refused to answer")
        if message.stop_reason == "model_context_window_exceeded":
            raise Ended("the conversation has become too long for the model")
        if reminders > _REMINDERS:
            raise Ended(f"it stopped {reminders} times without handing anything in")


def _refusal(error: anthropic.APIStatusError) -> str:
    """What the API would not do, without headers and without the request."""
    said = (error.api_message or type(error).__name__)[:200]
    if isinstance(error, anthropic.AuthenticationError | anthropic.PermissionDeniedError):
        return f"the API does not accept the key: {said}"
    if isinstance(error, anthropic.NotFoundError):
        return f"the API does not know the model: {said}"
    if isinstance(error, anthropic.RateLimitError):
        return f"the API's rate limit held through all retries: {said}"
    if isinstance(error, anthropic.BadRequestError) and "too long" in said:
        return f"the conversation is too long for the model: {said}"
    if isinstance(error, anthropic.InternalServerError):
        return f"the API was overloaded or broken through all retries ({error.status_code}): {said}"
    return f"the API refused the request ({error.status_code}): {said}"


def _words(message: BetaMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def _sent(setting: Setting) -> list[Any]:
    return [*(tool.to_dict() for tool in setting.tools), *setting.server_tools]


def _plain(value: Any) -> Any:
    """A block of an answer as plain data."""
    return value.to_dict()
