"""Phase C: the final commit is judged once more from a clean clone, packed, tagged, and brought to the user.

Each step is in the ledger when it is done, so a submission that was broken off goes on where it stopped. Nothing
reaches the user's repository before all of it was correct.
"""

import hashlib
import shutil
import time
from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import NoReturn

from protocol import events as ev
from protocol.ledger import Ledger
from protocol.snapshot import restore
from protocol.state import CampaignState, apply
from protocol.submission import SubmissionState, name_of, next_version, overall, unfinished
from team import scribe
from team.errors import UserError
from team.evaluation import CleanRoom, Unfit, clean_room
from team.launch import state_of
from team.report.submission_note import submission_note
from team.runs import Run
from team.tasks.formats.recognised import was_imported
from team.workspace.hub import Hub
from team.workspace.objects import Refused
from team.workspace.submit import check_target, names_taken, previous, push, submit

Say = Callable[[str], None]


def submit_run(run: Run, tag: str | None, into: str, to_remote: bool = False, say: Say = print) -> str:
    """All of phase C for a campaign's main; the sentences to print. ``UserError`` says why nothing was submitted."""
    state = state_of(run)
    if state.main == state.started.commit:
        raise UserError("Nothing was faster beyond doubt, so there is nothing to submit.", "See: kernelteam log")
    hub = Hub.open(run.folder)
    check_target(hub, state.main, tag or run.name, into, to_remote)
    with run.owned(), Ledger(run.ledger, writer=True) as ledger:
        return _Submission(run, hub, ledger, tag or run.name, say).carry_out(into, to_remote)


class _Submission:
    """One submission under one tag."""

    def __init__(self, run: Run, hub: Hub, ledger: Ledger, tag: str, say: Say) -> None:
        self._run, self._hub, self._ledger, self._tag, self._say = run, hub, ledger, tag, say
        self._state: CampaignState = restore(ledger)[0]

    def carry_out(self, into: str, to_remote: bool) -> str:
        """Evaluate, pack, tag, bring, push."""
        with clean_room(self._run, self._hub, self._state) as room:
            current = self._begun(room)
            self._evaluate(room, current)
            note = submission_note(self._state, current)
            artifact = self._packed(room.tree, current, note)
        commit = self._committed(current, note)
        name = name_of(self._tag, current.started.version)
        said = submit(self._hub, commit, self._tag, into, name)
        self._record(
            ev.Submitted(
                commit=commit,
                branch=f"autodev/{self._tag}",
                tag=self._tag,
                version=current.started.version,
                name=name,
                artifact=str(artifact),
                hashes=_hashes(artifact),
            )
        )
        lines = [said, f"It is tagged {name}; its files and its note are in {artifact}."]
        if to_remote:
            remote = push(self._hub, self._tag, name, into)
            self._record(ev.Pushed(name=name, remote=remote))
            lines.append(f"Pushed to {remote}.")
        return "\n".join(lines)

    def _begun(self, room: CleanRoom) -> SubmissionState:
        """The submission that was broken off, when its device is the same; else a new version."""
        found = unfinished(self._state.submissions, self._tag, self._state.main)
        if found is not None and found.started.device == room.device:
            self._say(f"Going on with {name_of(self._tag, found.started.version)}.")
            return found
        taken = names_taken(self._hub) | {
            name_of(other.started.tag, other.started.version) for other in self._state.submissions
        }
        version = next_version(taken, self._tag)
        self._record(
            ev.SubmissionStarted(
                tag=self._tag,
                version=version,
                evaluated=self._state.main,
                device=room.device,
                noise=room.noise(),
            )
        )
        return self._state.submissions[-1]

    def _evaluate(self, room: CleanRoom, current: SubmissionState) -> None:
        started, wanted = current.started, self._state.policy.submission_runs
        while len(current.runs) < wanted:
            try:
                measured, decision = room.evaluate(started.noise)
            except Unfit as unfit:
                self._refuse(started, unfit.why, unfit.workload)
            self._record(
                ev.SubmissionMeasured(
                    tag=started.tag,
                    version=started.version,
                    run=len(current.runs) + 1,
                    estimate=decision.overall,
                    workloads=decision.workloads,
                    measurement=measured,
                )
            )
            found = f"{exp(decision.overall.gain):.3f}x over the baseline"
            self._say(f"Run {len(current.runs)} of {wanted}: all workloads correct, {found}")
        if overall(current.runs).gain <= 0.0:
            self._refuse(started, f"{wanted} runs in a clean clone average {exp(overall(current.runs).gain):.3f}x", "")

    def _refuse(self, started: ev.SubmissionStarted, why: str, workload: str) -> NoReturn:
        self._record(ev.SubmissionRefused(tag=started.tag, version=started.version, why=why, workload=workload))
        raise UserError(
            f"The result {started.evaluated[:12]} is not fit to submit: {why}. Nothing was submitted.",
            "Look at it with: kernelteam ab base result",
        )

    def _packed(self, tree: Path, current: SubmissionState, note: str) -> Path:
        """The artifact, made again from the clean clone: the kernel's files, the file that the task's own format has
        for a result, and the note beside them."""
        folder = self._run.folder / "submissions" / name_of(self._tag, current.started.version)
        shutil.rmtree(folder, ignore_errors=True)
        for name in self._state.started.editable:
            if (tree / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree / name, folder / name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"submission_{_in_path(self._tag)}.md").write_text(note)
        if was_imported(self._run.trusted):
            from team.tasks.formats.export import artifact  # it brings torch, which other submissions do without

            name, text = artifact(self._run.trusted, tree)
            (folder / name).write_text(text)
        return folder

    def _committed(self, current: SubmissionState, note: str) -> str:
        """Main with the notes, on top of the last submission under this tag; made once for each version."""
        anchor = f"submissions/{name_of(self._tag, current.started.version)}"
        known = self._hub.git.attempt("rev-parse", "--verify", "--quiet", f"refs/kernelteam/{anchor}^{{commit}}")
        if known.returncode == 0:
            return known.stdout.decode().strip()
        path = f"notes/submission_{_in_path(self._tag)}.md"
        speedup = f"{exp(overall(current.runs).gain):.4f}"
        trailers = {"Submission": name_of(self._tag, current.started.version), "Speedup": speedup}
        made = self._with_notes({path: note}, f"Submission note and the campaign's notes: {speedup}x", trailers)
        before = previous(self._hub, self._tag)
        if before and not self._hub.is_ancestor(before, made):
            made = self._joined(made, before)
        self._hub.anchor(anchor, made)
        return made

    def _with_notes(self, files: dict[str, str], message: str, trailers: dict[str, str]) -> str:
        """Main with the notes of the whole campaign, those first that its coordinator did not live to write."""
        if (page := scribe.due(self._state)) is not None:
            self._record(scribe.write(self._hub, page))
        try:
            return self._hub.overlay(self._state.main, f"refs/heads/{scribe.NOTES}", files, message, trailers)
        except Refused as refused:
            raise UserError(
                f"The notes cannot be put beside the kernel: {refused}", "Move in your repository what stands there."
            ) from None

    def _joined(self, commit: str, before: str) -> str:
        """The tree of ``commit`` with the last submission as a second parent, so that the branch moves forward."""
        git = self._hub.git
        message = git.run("log", "-1", "--format=%B", commit)
        return git.text(
            "commit-tree", f"{commit}^{{tree}}", "-p", self._state.main, "-p", before, "-F", "-", data=message
        )

    def _record(self, body: ev.AnyBody) -> None:
        for event in self._ledger.append(time.time(), [("", body)]):
            apply(self._state, event)


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _in_path(tag: str) -> str:
    """A tag as part of a file's name."""
    return tag.replace("/", "_")
