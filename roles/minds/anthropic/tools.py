"""The tools that a model gets. Each is a plain function with a schema; what cannot be done is told to the model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import beta_tool
from anthropic.lib.tools import BetaFunctionTool, ToolError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.messages import Briefing, Parameter, PassedOver, Plan
from roles.minds.anthropic import shelf, trial
from roles.minds.anthropic.pad import Pad, Wrong
from roles.minds.anthropic.tape import Tape
from roles.minds.mind import Workshop

Tool = BetaFunctionTool[Any]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReadInput(_Input):
    """Which part of which file."""

    path: str = Field(description="relative to the task's folder")
    first: int = Field(default=1, description="line to begin with")


class EditInput(_Input):
    """One exact replacement."""

    path: str = Field(description="an editable file")
    old: str = Field(description="text that stands once in the file, copied exactly, line numbers left out")
    new: str = Field(description="what stands there afterwards")


class NothingInput(_Input):
    """No arguments."""


class NameInput(_Input):
    """What to look up."""

    name: str = Field(description="a technique, a category, or 'all'")


class WordsInput(_Input):
    """What to look for."""

    words: str = Field(description="words that must all occur")


class CodeInput(_Input):
    """Which part of the machine code."""

    function: str = Field(default="", description="name of a kernel; empty: the longest one")
    first: int = Field(default=1, ge=1, description="line to begin with")


class VariantInput(_Input):
    """A parameter setting of the one change."""

    parameters: dict[str, Parameter] = Field(description="name -> value, e.g. tile: 64")


class HowInput(_Input):
    """What was done."""

    how: str = Field(min_length=1, description="in one sentence")


class WhyInput(_Input):
    """Why there is no plan."""

    why: str = Field(min_length=1)
    passed_over: tuple[PassedOver, ...] = Field(default=(), description="what is due and cannot be done, by name")


def make(name: str, about: str, schema: type[BaseModel], act: Callable[[Any], str]) -> Tool:
    """A tool that checks its input by ``schema`` and then acts."""

    def call(**values: Any) -> str:
        try:
            return act(schema.model_validate(values))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ToolError(f"the input of {name} is wrong at '{where}': {first['msg']}") from error
        except Wrong as wrong:
            raise ToolError(str(wrong)) from wrong

    return beta_tool(call, name=name, description=about, input_schema=schema.model_json_schema())


def pad_tools(pad: Pad, folder: Path) -> list[Tool]:
    """Reading and editing."""

    def read(asked: ReadInput) -> str:
        return pad.read(asked.path, folder, asked.first)

    def edit(asked: EditInput) -> str:
        return pad.edit(asked.path, asked.old, asked.new)

    return [
        make("read_file", "Lines of a file of the task, with your edits.", ReadInput, read),
        make("edit_file", "Change an editable file by exact replacement.", EditInput, edit),
    ]


def check_tool(pad: Pad, workshop: Workshop, base: str, tape: Tape) -> Tool:
    """The judge's quick look."""

    def check(asked: NothingInput) -> str:
        if not pad.changed:
            raise Wrong("nothing is changed yet")
        key = json.dumps([base, pad.changed], sort_keys=True)
        return tape.once("check", key, lambda: trial.in_words(workshop.check(base, pad.changed)))

    about = "Build the files with your edits and check them against the reference; the compiler's report. No timing."
    return make("check", about, NothingInput, check)


def code_tool(pad: Pad, workshop: Workshop, briefing: Briefing, tape: Tape) -> Tool:
    """What the compiler made of the files as they are on the pad."""

    def machine_code(asked: CodeInput) -> str:
        if briefing.language == "cpp":
            raise Wrong(
                "this task runs on a CPU: there is no machine code of a GPU; see the compiler's words in `check`"
            )
        base = briefing.base
        key = json.dumps([base, pad.changed, asked.function, asked.first], sort_keys=True)
        return tape.once(
            "machine_code", key, lambda: workshop.machine_code(base, pad.changed, asked.function, asked.first)
        )

    about = (
        "SASS of a kernel with your edits, as the judge builds it: its most frequent opcodes, then its instructions."
    )
    return make("machine_code", about, CodeInput, machine_code)


def shelf_tools(briefing: Briefing) -> list[Tool]:
    """Looking things up."""

    def technique(asked: NameInput) -> str:
        return shelf.card(asked.name, briefing)

    def findings(asked: WordsInput) -> str:
        return shelf.findings(asked.words, briefing)

    def profile(asked: NothingInput) -> str:
        return shelf.profile(briefing)

    return [
        make("technique", "A technique card in full, or the names in a category.", NameInput, technique),
        make("findings", "What the team found and tried, by words.", WordsInput, findings),
        make("profile", "The newest profile in full.", NothingInput, profile),
    ]


class PlanInput(Plan):
    """A plan, and the parameters of the change when it has any."""

    parameters: dict[str, Parameter] = Field(default_factory=dict[str, Parameter])
