"""A GPU MODE problem: its cases, its inputs, its reference. Trusted and human-owned; it is executed here.

``reference.py`` imports ``task`` and ``utils``, names that other modules have too, so they are put in place only while
it loads. Inputs are made on the CPU whatever device the problem asks for: the judge brings them to the card.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import torch
import yaml
from torch.overrides import TorchFunctionMode

from team.errors import UserError
from team.tasks.first_kernel.names import safe_name

CASE = "task.yml"
REFERENCE = "reference.py"
PARTS = ("generate_input", "ref_kernel", "check_implementation")
SEED = "seed"
_LOADING = Lock()  # sys.modules and torch's one generator are shared by all threads
_TENSOR: Any = torch.Tensor


class Elsewhere(TorchFunctionMode):
    """Makes on another device what a problem asks to have made on a GPU."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is _TENSOR.cuda:
            return args[0]
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            kwargs["device"] = self._device
        args = tuple(self._device if func is _TENSOR.to and one in ("cuda", "cuda:0") else one for one in args)
        return func(*args, **kwargs)


@contextmanager
def elsewhere(device: torch.device) -> Iterator[None]:
    """As ``Elsewhere``, for generators as well, which are the host's then; nothing changes for a GPU."""
    if device.type == "cuda":
        yield
        return
    original: Any = torch.Generator
    torch.Generator = lambda *_, **__: original("cpu")  # type: ignore[assignment,misc]
    try:
        with Elsewhere(device):
            yield
    finally:
        torch.Generator = original


@dataclass(frozen=True)
class Data:
    """What ``generate_input`` gave: its form, and its tensors by name."""

    form: Any
    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]

    def named(self) -> dict[str, torch.Tensor]:
        """The tensors by name."""
        return dict(zip(self.names, self.tensors, strict=True))

    def filled(self, given: Mapping[str, torch.Tensor]) -> Any:
        """The same form with copies of other tensors, or of its own beside them: a reference may write to them."""
        device = next((one.device for one in given.values()), None)
        own = {name: value if device is None else value.to(device) for name, value in self.named().items()}
        waiting = iter([given.get(name, value).clone() for name, value in own.items()])
        return _mapped(self.form, lambda _: next(waiting))


@dataclass(frozen=True)
class Problem:
    """One problem's folder."""

    folder: Path

    @cached_property
    def told(self) -> dict[str, Any]:
        """What task.yml says."""
        try:
            found = yaml.safe_load((self.folder / CASE).read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise UserError(f"{self.folder / CASE} cannot be read: {error}.", "Correct it.") from None
        if not isinstance(found, dict) or not found.get("benchmarks"):
            raise UserError(f"{self.folder / CASE} lists no benchmarks.", "Add the cases that are timed.")
        return {str(key): value for key, value in found.items()}

    def cases(self, kind: str) -> list[dict[str, Any]]:
        """The arguments of ``tests`` or ``benchmarks`` without their seeds."""
        return [{str(key): value for key, value in one.items() if key != SEED} for one in self.told.get(kind) or []]

    def support(self) -> dict[str, Path]:
        """Python files that the reference may import, by name, where task.yml says they are or beside it."""
        listed = {str(one["name"]): str(one["source"]) for one in self.told.get("files") or []}
        found: dict[str, Path] = {}
        for name in ("task.py", "utils.py"):
            for place in (self.folder / name, self.folder / listed.get(name, name)):
                if place.is_file():
                    found.setdefault(name, place)
        return found

    @cached_property
    def parts(self) -> dict[str, Any]:
        """The reference module, executed."""
        path = self.folder / REFERENCE
        with _LOADING, _beside({name: _module(name, place) for name, place in self.support().items()}):
            module = _module(REFERENCE, path)
        for part in PARTS:
            if not callable(getattr(module, part, None)):
                raise UserError(f"{path} defines no {part}.", f"It has {', '.join(PARTS)}.")
        return vars(module)

    def data(self, case: Mapping[str, Any], seed: int) -> Data:
        """Inputs of one case on the CPU."""
        form = self._called("generate_input", **case, seed=seed)
        tensors: list[torch.Tensor] = []
        _mapped(form, lambda value: tensors.append(value))
        return Data(form, self._names(len(tensors), case), tuple(tensors))

    def results(self, data: Any) -> tuple[torch.Tensor, ...]:
        """What the reference makes of some data, which it may change."""
        found: list[torch.Tensor] = []
        _mapped(self._called("ref_kernel", data), lambda value: found.append(value))
        return tuple(found)

    def accepts(self, data: Any, answer: Any) -> bool:
        """Whether the problem's own check takes an answer for right."""
        said = self._called("check_implementation", data, answer)
        return bool(said[0]) if isinstance(said, tuple) else not said

    def _called(self, name: str, *given: Any, **named: Any) -> Any:
        function: Callable[..., Any] = self.parts[name]
        try:
            with _LOADING, torch.random.fork_rng(devices=[]), torch.no_grad(), elsewhere(_device_of(given)):
                return function(*given, **named)
        except Exception as error:  # human-owned code may raise anything
            said = f"{name} of {self.folder / REFERENCE} raised {type(error).__name__}: {error}."
            raise UserError(said, "Correct it.") from error

    def _names(self, count: int, case: Mapping[str, Any]) -> tuple[str, ...]:
        """What ``ref_kernel`` calls the parts of its data, where it takes them apart by name."""
        wishes = _unpacked((self.folder / REFERENCE).read_text())
        if len(wishes) != count:
            wishes = ["data"] if count == 1 else [f"data{place}" for place in range(count)]
        names: list[str] = []
        for wish in wishes:
            names.append(safe_name(wish, [*case, *names]))
        return tuple(names)


def read_problem(path: Path) -> Problem:
    """The problem in a folder, or in the folder of its task.yml."""
    return Problem(path if path.is_dir() else path.parent)


def _module(name: str, path: Path) -> ModuleType:
    module = ModuleType(name.removesuffix(".py"))
    module.__file__ = str(path)
    try:
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    except FileNotFoundError:
        raise UserError(f"There is no {path}.", f"A problem has {CASE} and {REFERENCE}.") from None
    except ModuleNotFoundError as error:
        raise UserError(f"{path} needs the module {error.name}.", f"Put {error.name}.py beside it.") from None
    except Exception as error:  # human-owned code may raise anything while it loads
        raise UserError(f"{path} does not load: {type(error).__name__}: {error}.", "Correct it.") from error
    return module


@contextmanager
def _beside(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Let these modules be imported by their names for a while."""
    names = [name.removesuffix(".py") for name in modules]
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(zip(names, modules.values(), strict=True))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _mapped(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The value with every tensor in it changed, in order."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(one, change) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_mapped(one, change) for one in value])
    return value


def _device_of(value: Any) -> torch.device:
    """Where the first tensor is; the host where there is none."""
    found: list[torch.device] = []
    _mapped(value, lambda tensor: found.append(tensor.device))
    return found[0] if found else torch.device("cpu")


def _unpacked(text: str) -> Sequence[str]:
    """The names of ``a, b = data`` at the beginning of ``ref_kernel``."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == "ref_kernel" and node.args.args:
            given = node.args.args[0].arg
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name) and inner.value.id == given:
                    targets = inner.targets[0].elts if isinstance(inner.targets[0], ast.Tuple) else []
                    return [one.id for one in targets if isinstance(one, ast.Name)]
            return [given]
    return []
