"""The ledger with real files and real processes: acknowledged is durable, and nothing is ever half there."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from story import A, measured, plan, started

from protocol import events as ev
from protocol.ledger import Ledger, LedgerError
from protocol.messages import Verdict
from protocol.wire import WireError, decode, pack

WRITER = """
import sys
from pathlib import Path
from typing import Any
from protocol.events import StopRequested, Finished
from protocol.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), writer=True)
count = 0
while True:
    body = StopRequested(why=str(count) + "x" * int(sys.argv[2]))
    seqs = [event.seq for event in ledger.append(float(count), [("a", body), ("b", Finished(why=str(count)))])]
    print(*seqs, flush=True)
    count += 1
"""


def stop(why: str) -> ev.StopRequested:
    return ev.StopRequested(why=why)


def write(path: Path, size: int = 10, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(size)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def kinds(path: Path) -> list[tuple[int, str, str]]:
    with Ledger(path) as ledger:
        return [(event.seq, event.agent, event.body.kind) for event in ledger.events()]


def test_a_whole_campaign_reads_back_as_it_was_written(tmp_path: Path) -> None:
    story = started()
    story.land(story.experiment(A, Verdict.KEEP, 0.2), "exploiter-1")
    with Ledger(tmp_path / "l", writer=True) as ledger:
        for event in story.events:
            ledger.append(event.time, [(event.agent, event.body)])
    with Ledger(tmp_path / "l") as ledger:
        assert list(ledger.events()) == story.events
        assert [e.seq for e in ledger.events(after=5)] == [e.seq for e in story.events[5:]]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    TEXTS.filter(bool),
    st.dictionaries(TEXTS, st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXTS | st.booleans()),
)
def test_whatever_a_mind_writes_reads_back(tmp_path: Path, text: str, parameters: dict) -> None:
    body = ev.ExperimentReported(
        experiment=text, commit=text, parameters=parameters, screened=((parameters, None),),
        measurement=measured(),
    )  # fmt: skip
    assert ev.body_from(decode(pack(body.model_dump(mode="json")))) == body


@pytest.mark.parametrize("why", ["\ud800", 2**70], ids=["half a surrogate pair", "a number of 70 bits"])
def test_what_cannot_be_stored_leaves_the_ledger_open_for_the_next(tmp_path: Path, why: object) -> None:
    body = ev.ExperimentReported(
        experiment="x1", commit="c", parameters={"knob": why}, screened=(), measurement=measured()
    )
    with Ledger(tmp_path / "l", writer=True) as ledger:
        with pytest.raises(WireError):
            ledger.append(1.0, [("a", stop("first")), ("a", body)])
        assert [event.seq for event in ledger.append(2.0, [("a", stop("next"))])] == [1]
    assert kinds(tmp_path / "l") == [(1, "a", "stop_requested")]


@pytest.mark.parametrize("acknowledged", [1, 7, 60])
def test_kill_9_loses_nothing_acknowledged_and_leaves_no_half_transaction(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "ledger with spaces? and #.sqlite"
    writer = write(path)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(acknowledged)]
    writer.send_signal(signal.SIGKILL)
    said += writer.stdout.readlines()
    writer.communicate()
    promised = [int(seq) for line in said if line.endswith("\n") for seq in line.split()]
    found = kinds(path)
    assert [seq for seq, _, _ in found] == list(range(1, len(found) + 1))
    assert len(found) >= promised[-1] >= 2 * acknowledged
    assert len(found) % 2 == 0, "both events of a transaction or none"
    with Ledger(path, writer=True) as ledger:
        assert ledger.append(0.0, [("a", stop("on"))])[0].seq == len(found) + 1


def test_a_reader_in_another_process_sees_what_is_acknowledged_while_the_writer_lives(tmp_path: Path) -> None:
    writer = write(tmp_path / "l")
    assert writer.stdout is not None
    try:
        last = int(writer.stdout.readline().split()[1])
        assert len(kinds(tmp_path / "l")) >= last
    finally:
        writer.kill()
        writer.communicate()


def test_a_full_disk_is_told_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    limit = 600_000

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    writer = write(tmp_path / "l", size=20_000, preexec_fn=small)
    said, error = writer.communicate(timeout=60)
    assert "LedgerError" in error
    assert str(tmp_path / "l") in error.splitlines()[-1]
    promised = [int(seq) for line in said.splitlines() for seq in line.split()]
    found = kinds(tmp_path / "l")
    assert [seq for seq, _, _ in found] == list(range(1, len(found) + 1))
    assert len(found) >= promised[-1] > 2
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", stop("there is room again"))])


def test_an_append_that_fails_may_be_repeated(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", stop("first"))])
        ledger._db.execute("PRAGMA query_only=ON")
        with pytest.raises(LedgerError, match="cannot write"):
            ledger.append(1.0, [("a", stop("second"))])
        ledger._db.execute("PRAGMA query_only=OFF")
        assert ledger.append(2.0, [("a", stop("second"))])[0].seq == 2


@pytest.mark.parametrize("raw", [{}, {"kind": "nonsense"}, {"kind": ["stopped"]}, [], "stop_requested", None])
def test_what_is_no_body_is_refused(raw: Any) -> None:
    with pytest.raises(ValidationError):
        ev.body_from(raw)


READER = """
import os, sys
from pathlib import Path
from typing import Any
from protocol.events import body_from
from protocol.ledger import Ledger, LedgerError
body_from({"kind": "stop_requested", "why": "what is loaded for the first event may lie where nobody else can read"})
os.setgid(65534)
os.setuid(65534)
try:
    Ledger(Path(sys.argv[1]), writer=True).append(0.0, [])
except LedgerError as error:
    print("refused:", error)
with Ledger(Path(sys.argv[1])) as ledger:
    print(len(list(ledger.events())))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become somebody to whom the folder is read-only")
def test_a_read_only_folder_is_read_and_refused_for_writing() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        with Ledger(folder / "l", writer=True) as ledger:
            ledger.append(0.0, [("a", stop("only"))])
        folder.chmod(0o555)
        (folder / "l").chmod(0o444)
        said = subprocess.run([sys.executable, "-c", READER, str(folder / "l")], capture_output=True, text=True)
    assert said.stdout.splitlines()[-1:] == ["1"], said
    assert "refused: cannot" in said.stdout


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", stop("old")), ("a", stop("new"))])
    _execute(tmp_path / "l", "UPDATE events SET schema = ? WHERE seq = 2", ev.SCHEMA + 1)
    with pytest.raises(LedgerError, match="update kernelteam"):
        kinds(tmp_path / "l")


@pytest.mark.parametrize("body", [b"\xc1", pack({"kind": "no such kind"}), pack({"kind": "finished"}), pack([1])])
def test_a_damaged_event_is_told_with_the_file(tmp_path: Path, body: bytes) -> None:
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [("a", stop("x"))])
    _execute(tmp_path / "l", "UPDATE events SET body = ?", body)
    with pytest.raises(LedgerError, match="cannot read the ledger"):
        kinds(tmp_path / "l")


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger(tmp_path / "none")
    (tmp_path / "text").write_text("this is no database, it is a text that is long enough to have a header" * 10)
    with pytest.raises(LedgerError):
        kinds(tmp_path / "text")
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "no-folder" / "l", writer=True)


def test_a_plan_is_stored_whole(tmp_path: Path) -> None:
    body = ev.PlanRefused(experiment="x1", plan=plan(), why="no", dollars=0.25)
    with Ledger(tmp_path / "l", writer=True) as ledger:
        ledger.append(0.0, [(A, body)])
        assert [event.body for event in ledger.events()] == [body]


def _execute(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement, values)
    db.close()
