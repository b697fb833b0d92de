"""The records of FlashInfer-Trace as types: definitions, workloads, solutions, traces. Foreign data: nothing runs here.

Unknown keys are dropped, since producers add their own; everything that is used is held to its form.
"""

import ast
import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Dtype = Literal[
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1", "int64", "int32", "int16", "int8",
    "bool",
]  # fmt: skip
Language = Literal["python", "triton", "cpp", "cuda", "tilelang"]
Status = Literal[
    "PASSED", "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE", "RUNTIME_ERROR", "COMPILE_ERROR", "TIMEOUT"
]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Axis(_Record):
    """One named extent: the same everywhere (``const``) or given by each workload (``var``)."""

    type: Literal["const", "var"]
    value: int | None = Field(default=None, ge=0)
    description: str | None = None

    @model_validator(mode="after")
    def _valued(self) -> "Axis":
        if (self.type == "const") != (self.value is not None):
            raise ValueError("a const axis has a value, a var axis has none")
        return self


class TensorSpec(_Record):
    """One input or output: names of axes as its extents (None: a Python number; empty: a tensor without axes)."""

    shape: tuple[str, ...] | None
    dtype: Dtype
    description: str | None = None
    optional: bool = False


class Definition(_Record):
    """What is computed: axes, inputs, outputs, and a reference in Python with a top-level ``run``."""

    name: str = Field(min_length=1)
    op_type: str = Field(min_length=1)
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec] = Field(min_length=1)
    outputs: dict[str, TensorSpec] = Field(min_length=1)
    reference: str
    tags: tuple[str, ...] = ()
    description: str | None = None
    constraints: tuple[str, ...] = ()

    @field_validator("tags", "constraints", mode="before")
    @classmethod
    def _absent(cls, value: object) -> object:
        return () if value is None else value

    @field_validator("reference")
    @classmethod
    def _run(cls, value: str) -> str:
        """FlashInfer's own trace layer calls the reference ``_NAME_reference``; everywhere else it is ``run``."""
        tree = _parsed(value, "exec", "the reference")
        names = [node.name for node in getattr(tree, "body", []) if isinstance(node, ast.FunctionDef)]
        found = [name for name in names if re.fullmatch(r"_\w+_reference", name)]
        return value if "run" in names or len(found) != 1 else re.sub(rf"\b{found[0]}\b", "run", value)

    @model_validator(mode="after")
    def _coherent(self) -> "Definition":
        if common := self.inputs.keys() & self.outputs.keys():
            raise ValueError(f"'{min(common)}' is both an input and an output")
        for name, spec in {**self.inputs, **self.outputs}.items():
            if missing := [axis for axis in spec.shape or () if axis not in self.axes]:
                raise ValueError(f"'{name}' has the axis '{missing[0]}', which is not declared")
        for text in self.constraints:
            _parsed(text, "eval", f"the constraint '{text}'")
        tree = _parsed(self.reference, "exec", "the reference")
        if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in getattr(tree, "body", [])):
            raise ValueError("the reference has no function 'run' at its top level")
        return self

    @property
    def constants(self) -> dict[str, int]:
        """Const axes with their values."""
        return {name: axis.value for name, axis in self.axes.items() if axis.value is not None}

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the var axes."""
        return tuple(name for name, axis in self.axes.items() if axis.value is None)

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """The inputs that are tensors."""
        return {name: spec for name, spec in self.inputs.items() if spec.shape is not None}

    @property
    def scalars(self) -> dict[str, TensorSpec]:
        """The inputs that are Python numbers."""
        return {name: spec for name, spec in self.inputs.items() if spec.shape is None}


def _parsed(text: str, mode: Literal["exec", "eval"], what: str) -> ast.AST:
    try:
        return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not Python: {error}") from None


class RandomInput(_Record):
    """An input that is drawn."""

    type: Literal["random"]


class ScalarInput(_Record):
    """A number."""

    type: Literal["scalar"]
    value: bool | int | float


class SafetensorsInput(_Record):
    """A recorded tensor: the file's path below the data set's root, and the tensor's name in it."""

    type: Literal["safetensors"]
    path: str
    tensor_key: str


InputSpec = Annotated[RandomInput | ScalarInput | SafetensorsInput, Field(discriminator="type")]


class Workload(_Record):
    """One set of extents, and where each input comes from; an input that is not named is drawn."""

    uuid: str = Field(min_length=1)
    axes: dict[str, Annotated[int, Field(ge=0)]]
    inputs: dict[str, InputSpec] = Field(default_factory=dict[str, InputSpec])


class SourceFile(_Record):
    """One file of a solution; its path is relative and stays below."""

    path: str
    content: str = Field(min_length=1)

    @field_validator("path")
    @classmethod
    def _below(cls, value: str) -> str:
        parts = PurePosixPath(value).parts
        if not parts or value.startswith("/") or "\\" in value or ".." in parts:
            raise ValueError(f"the path '{value}' is not one below the solution")
        return value


class BuildSpec(_Record):
    """How a solution is built and called. Its defaults are the package's."""

    language: Language
    target_hardware: tuple[str, ...] = Field(min_length=1)
    entry_point: str = Field(pattern=r"^[^:]+::[A-Za-z_]\w*$", description="file::symbol")
    dependencies: tuple[str, ...] = ()
    destination_passing_style: bool = True
    binding: Literal["tvm-ffi", "torch"] | None = None


class Solution(_Record):
    """One implementation of a definition."""

    name: str = Field(min_length=1)
    definition: str = Field(min_length=1)
    author: str
    description: str | None = None
    spec: BuildSpec
    sources: tuple[SourceFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _whole(self) -> "Solution":
        paths = [source.path for source in self.sources]
        if len(set(paths)) != len(paths):
            raise ValueError("two sources have the same path")
        if self.entry_file not in paths:
            raise ValueError(f"the entry point's file '{self.entry_file}' is not among the sources")
        return self

    @property
    def entry_file(self) -> str:
        """The file that holds the entry point."""
        return self.spec.entry_point.split("::")[0]

    @property
    def entry_symbol(self) -> str:
        """The entry point's name in it."""
        return self.spec.entry_point.split("::")[1]


class Correctness(_Record):
    """The largest errors that were seen."""

    max_relative_error: float
    max_absolute_error: float
    extra: dict[str, float] | None = None


class Performance(_Record):
    """Milliseconds, and the ratio of reference to solution."""

    latency_ms: float = Field(ge=0.0)
    reference_latency_ms: float = Field(ge=0.0)
    speedup_factor: float = Field(ge=0.0)


class Environment(_Record):
    """Where it ran."""

    hardware: str
    libs: dict[str, str] = Field(default_factory=dict)


class Evaluation(_Record):
    """What a benchmark run said; which parts there are depends on the status."""

    status: Status
    environment: Environment
    timestamp: str
    log: str = ""
    correctness: Correctness | None = None
    performance: Performance | None = None

    @model_validator(mode="after")
    def _parts(self) -> "Evaluation":
        wanted = {"PASSED": (True, True), "INCORRECT_NUMERICAL": (True, False)}.get(self.status, (False, False))
        if (self.correctness is not None, self.performance is not None) != wanted:
            raise ValueError(f"{self.status} goes with correctness: {wanted[0]}, performance: {wanted[1]}")
        return self


class Trace(_Record):
    """One line of a data set's workloads or traces."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: Evaluation | None = None
