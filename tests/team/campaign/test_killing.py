"""The bench of the kill points and its audit, without a campaign: that it can start, and that it sees what is lost."""

import sqlite3
import time
from pathlib import Path

import pytest
from killing import Broken, Killing, make_bench

from protocol.events import StopRequested
from protocol.ledger import Ledger
from roles.minds.scripted import Play
from roles.techniques.catalog import pool
from team.tasks.spec import read_spec


def test_the_benchs_task_and_script_are_what_a_campaign_takes(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    spec = read_spec(bench.task)
    (proposal,) = Play.model_validate_json((tmp_path / "script.json").read_text()).proposals
    assert proposal.plan.category in {category.name for category in pool("cpp")}
    assert list(proposal.variants[0].files) == list(spec.editable_files)


def test_the_audit_sees_an_acknowledged_event_that_is_gone_or_changed(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    folder = bench.home / "runs" / "one"
    folder.mkdir(parents=True)
    killing = Killing(bench, seed=0)
    with Ledger(folder / "ledger.sqlite", writer=True) as ledger:
        for why in ("first", "second"):
            ledger.append(time.time(), [("", StopRequested(why=why))])
        killing.acknowledge()
        ledger.append(time.time(), [("", StopRequested(why="third"))])
        killing.acknowledge()
        with sqlite3.connect(ledger.path) as harm:
            harm.execute("DELETE FROM events WHERE seq = 3")
        with pytest.raises(Broken, match="3 were acknowledged, 2 are there"):
            killing.acknowledge()
        with sqlite3.connect(ledger.path) as harm:
            harm.execute("DELETE FROM events WHERE seq = 2")
        ledger.append(time.time(), [("", StopRequested(why="another")), ("", StopRequested(why="third"))])
        with pytest.raises(Broken, match="lost or changed"):
            killing.acknowledge()
