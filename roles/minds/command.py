"""A mind that is somebody else's command line: a coding agent, or any program that edits files and writes an answer.

It runs in a copy of the task without any link to the repository, gets the duty on stdin and as files, edits the
editable files where they lie, and writes one JSON file with its plan. Its cost is what it says, or the cap.
"""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from protocol.messages import (
    Briefing,
    Chronicle,
    Compared,
    Insight,
    Merge,
    Message,
    Parameter,
    Plan,
    Proposal,
    Recheck,
    RecheckReport,
    ResearchReport,
    Resolution,
    SearchReport,
    Source,
    Variant,
)
from roles.minds.mind import CannotResolve, MindFailed, NothingToPropose, Workshop
from roles.minds.process import run_command
from roles.prompts import texts

TRIES = 2  # times that the command is asked for one experiment; the second time it is told what was wrong
MAX_ANSWER = 1 << 20  # bytes
_PLACE = ".kernelteam"
_TAIL = 400  # characters of a transcript that a failure carries


class CommandOptions(Message):
    """What a campaign file says about a ``command`` mind."""

    run: str = Field(min_length=1, description="the command line, split like a shell does; no shell runs it")
    seconds: float = Field(default=900.0, gt=0.0, description="wall time of one call; then its process group is killed")
    dollars: float = Field(default=0.0, ge=0.0, description="money cap of one call; counted when the answer names none")
    keys: tuple[str, ...] = Field(default=(), description="names of environment variables that it gets, e.g. HOME")

    @field_validator("run")
    @classmethod
    def _splits(cls, run: str) -> str:
        if not shlex.split(run):  # raises ValueError for an open quote
            raise ValueError("it is empty")
        return run

    @property
    def words(self) -> tuple[str, ...]:
        """The command line's words."""
        return tuple(shlex.split(self.run))


class Found(Message):
    """The answer's part for a search."""

    queries: tuple[str, ...] = Field(min_length=1)
    sources: tuple[Source, ...] = Field(min_length=1)
    technique: str = Field(min_length=1)
    category: str = Field(min_length=1)
    why: str = Field(min_length=1)


class Checked(Message):
    """The answer's part for a re-check."""

    compared: tuple[Compared, ...] = Field(min_length=1)
    suspect: str = ""


class Answer(Message):
    """What the command writes: one of ``plan``, ``search``, ``check``, ``insights``, ``how`` (a merge) and ``nothing``
    (why it has no idea)."""

    plan: Plan | None = None
    check: Checked | None = None
    insights: tuple[Insight, ...] = ()
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    search: Found | None = None
    how: str = ""
    nothing: str = ""
    dollars: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)


@dataclass
class _Try:
    """One call of the command: what it answered, and the editable files that it changed."""

    answer: Answer
    files: dict[str, str]


class CommandMind:
    """Asks the command line for every duty."""

    name = "command"

    def __init__(self, options: CommandOptions, workshop: Workshop) -> None:
        self._options = options
        self._workshop = workshop
        self._spent = 0.0

    def propose(self, briefing: Briefing) -> Proposal:
        """Ask until the answer is one, at most ``TRIES`` times."""
        self._spent, problem = 0.0, ""
        for _ in range(TRIES):
            try:
                tried = self._ask(briefing, texts.experiment_text(briefing, problem) + _ANSWERS["experiment"])
                return self._proposal(tried)
            except _Useless as useless:
                problem = str(useless)
        raise MindFailed(f"the command gave no usable answer: {problem}", self._spent)

    def repair(self, briefing: Briefing, proposal: Proposal, failure: str) -> Proposal | None:
        """One call with the failed files in place and what the compiler said."""
        self._spent = 0.0
        text = texts.repair_text(briefing, proposal.plan, failure) + _ANSWERS["repair"]
        try:
            tried = self._ask(briefing, text, proposal.variants[0].files)
        except _Useless:
            return None
        files = {**proposal.variants[0].files, **tried.files}
        variant = Variant(parameters=proposal.variants[0].parameters, files=files)
        return Proposal(plan=proposal.plan, variants=(variant,), dollars=self._spent)

    def resolve(self, merge: Merge) -> Resolution:
        """One call with main's files in place and both diffs."""
        self._spent = 0.0
        try:
            tried = self._ask(merge.briefing, texts.merge_text(merge) + _ANSWERS["merge"])
        except _Useless as useless:
            raise CannotResolve(str(useless), self._spent) from useless
        if not tried.files:
            raise CannotResolve(tried.answer.nothing or "the command changed no file", self._spent)
        how = tried.answer.how or "by the command"
        return Resolution(files=tried.files, how=how, dollars=self._spent)

    def research(self, briefing: Briefing, duty_id: str) -> SearchReport:
        """One call, whose answer names its queries and sources."""
        self._spent = 0.0
        try:
            found = self._ask(briefing, texts.search_text(briefing) + _ANSWERS["search"]).answer.search
        except _Useless as useless:
            raise MindFailed(f"the command gave no usable answer to a search: {useless}", self._spent) from useless
        if found is None:
            raise MindFailed("the command's answer to a search has no 'search'", self._spent)
        return SearchReport(id=duty_id, dollars=self._spent, **dict(found))

    def recheck(self, briefing: Briefing, duty: Recheck) -> RecheckReport:
        """One call, whose answer compares the technique with what was seen."""
        self._spent = 0.0
        try:
            found = self._ask(briefing, texts.recheck_text(briefing, duty) + _ANSWERS["recheck"]).answer.check
        except _Useless as useless:
            raise MindFailed(f"the command gave no usable answer to a re-check: {useless}", self._spent) from useless
        if found is None:
            raise MindFailed("the command's answer to a re-check has no 'check'", self._spent)
        told = {"id": duty.id, "experiment": duty.experiment, "technique": duty.technique, "dollars": self._spent}
        return RecheckReport(**told, **dict(found))

    def reflect(self, chronicle: Chronicle, duty_id: str) -> ResearchReport:
        """One call in an empty folder: the record is all it gets."""
        self._spent = 0.0
        try:
            with self._workshop.cleared() as folder:
                text = texts.reflect_text(chronicle) + _ANSWERS["research"]
                insights = self._call(folder, text, chronicle.model_dump_json(indent=1)).insights
        except _Useless as useless:
            raise MindFailed(f"the command gave no usable answer to research: {useless}", self._spent) from useless
        if not insights:
            raise MindFailed("the command's answer to research has no 'insights'", self._spent)
        return ResearchReport(id=duty_id, insights=insights, dollars=self._spent)

    def _proposal(self, tried: _Try) -> Proposal:
        answer = tried.answer
        if answer.nothing:
            raise NothingToPropose(answer.nothing, self._spent)
        if answer.plan is None:
            raise _Useless("the answer has neither 'plan' nor 'nothing'")
        if not tried.files:
            raise _Useless("no editable file was changed")
        variant = Variant(parameters=answer.parameters, files=tried.files)
        return Proposal(plan=answer.plan, variants=(variant,), dollars=self._spent)

    def _ask(self, briefing: Briefing, text: str, overlay: Mapping[str, str] | None = None) -> _Try:
        """One call; ``_Useless`` says what is wrong with what came back."""
        with self._workshop.laid_out(briefing.base) as folder:
            for path, content in (overlay or {}).items():
                (folder / path).write_text(content)
            before = _digests(folder)
            answer = self._call(folder, text, briefing.model_dump_json(indent=1))
            return _Try(answer, _edits(folder, before, briefing, overlay or {}))

    def _call(self, folder: Path, text: str, facts: str) -> Answer:
        """Run the command in ``folder`` and read its answer."""
        place = folder / _PLACE
        (place / "home").mkdir(parents=True)
        (place / "duty.md").write_text(text)
        (place / "briefing.json").write_text(facts)
        ended = run_command(
            self._options.words,
            folder,
            text,
            self._environment(place),
            self._options.keys,
            self._options.seconds,
            folder.parent / "transcripts" / f"{folder.name}.log",
        )
        answer = self._answer(place / "answer.json")
        if ended.status is None:
            raise _Useless(f"it ran for more than {self._options.seconds:g} s and was killed")
        if answer is None:
            raise _Useless(f"it left no answer (exit {ended.status}): {ended.transcript[-_TAIL:].strip()}")
        return answer

    def _environment(self, place: Path) -> dict[str, str]:
        return {
            "HOME": str(place / "home"),
            "KERNELTEAM_DUTY": str(place / "duty.md"),
            "KERNELTEAM_BRIEFING": str(place / "briefing.json"),
            "KERNELTEAM_ANSWER": str(place / "answer.json"),
            "KERNELTEAM_SECONDS": f"{self._options.seconds:g}",
            "KERNELTEAM_DOLLARS": f"{self._options.dollars:g}",
        }

    def _answer(self, path: Path) -> Answer | None:
        """What was written, None when nothing was; its cost is counted whatever else is wrong with it."""
        self._spent += self._options.dollars
        if path.is_symlink() or not path.is_file():
            return None
        if path.stat().st_size > MAX_ANSWER:
            raise _Useless("its answer is too long")
        try:
            answer = Answer.model_validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors()[0]
            raise _Useless(f"its answer is wrong at {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        if answer.dollars is not None:
            self._spent += answer.dollars - self._options.dollars
        return answer


class _Useless(Exception):
    """What came back from a call cannot be used; the text says why."""


def _edits(folder: Path, before: Mapping[str, str], briefing: Briefing, overlay: Mapping[str, str]) -> dict[str, str]:
    """New text of the editable files; what else was there must be as it was. New files beside them are scraps."""
    after = _digests(folder)
    for path, digest in before.items():
        if path not in briefing.editable and after.get(path) != digest:
            raise _Useless(f"it changed {path}, which is not editable")
    found: dict[str, str] = {}
    for path in sorted(briefing.editable):
        if path not in after:
            raise _Useless(f"it removed {path}")
        text = (folder / path).read_text(errors="replace")
        if text != overlay.get(path, briefing.editable[path]):
            found[path] = text
    return found


def _digests(folder: Path) -> dict[str, str]:
    """Path -> sha256 of every plain file below ``folder``, but for what belongs to the call itself."""
    found: dict[str, str] = {}
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        if inside.parts[0] != _PLACE and path.is_file() and not path.is_symlink():
            found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


_WRITE = "\n\n## Answer\n\nWrite JSON to the file that $KERNELTEAM_ANSWER names: "
_HOW = "\n\n## Answer\n\nEdit the files where they lie. Then write JSON to the file that $KERNELTEAM_ANSWER names: "
_ANSWERS = {
    "experiment": _HOW
    + 'a map with "plan" (its fields are below) and, if you know it, "dollars" (what this call cost); '
    f'or, when you have no idea, only "nothing" (why).\n\n```json\n{texts.plan_schema()}\n```\n',
    "repair": _HOW + 'a map with "dollars" (what this call cost), or an empty one.\n',
    "merge": _HOW + 'a map with "how" (one sentence), or "nothing" (why it cannot be done).\n',
    "search": '\n\n## Answer\n\nWrite JSON to the file that $KERNELTEAM_ANSWER names: a map with "search", a map of '
    '"queries", "sources" (each with "title" and "locator"), "technique", "category" and "why".\n',
    "recheck": _WRITE + 'a map with "check", a map of "compared" (each with "what", "card", "seen" and "holds") and '
    '"suspect" (the orthogonal fault that would explain the regression; empty when there is none).\n',
    "research": _WRITE + 'a map with "insights" (each with "what", "why" and "next").\n',
}
