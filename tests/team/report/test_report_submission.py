"""The note of a submission says how fast, by what, what failed and what remains, and nothing that breaks Markdown."""

from pathlib import Path

from campaigns import campaign, estimate
from test_report_lines import HOSTILE

from protocol import events as ev
from protocol.messages import Noise
from protocol.state import CampaignState
from protocol.submission import SubmissionState
from team.report.reading import read_story
from team.report.submission_note import submission_note

NOISE = Noise(restart_sd=0.001, restart_df=11, pair_sd=0.004, floor=0.005)


def submission(state: CampaignState, tag: str = "fast") -> SubmissionState:
    started = ev.SubmissionStarted(tag=tag, version=2, evaluated=state.main, device="cpu:0", noise=NOISE)
    runs = [
        ev.SubmissionMeasured(
            tag=tag,
            version=2,
            run=number + 1,
            estimate=estimate(0.5 + 0.01 * number),
            workloads={"square-128": estimate(0.4 + 0.01 * number)},
            measurement=None,
        )
        for number in range(5)
    ]
    return SubmissionState(started, runs)


def test_the_note_says_what_the_rules_ask(tmp_path: Path) -> None:
    campaign(tmp_path, 30)
    state = read_story(tmp_path).state
    note = submission_note(state, submission(state))
    assert note == submission_note(state, submission(state))
    assert "submission-fast-v2" in note
    assert "**1.682x** over the baseline, the average of 5 full evaluations (from 1.649x to 1.716x" in note
    assert "| square-128 | M=128 N=128 K=128 | 1.522x |" in note
    headline, failed, remains = (note.split(f"## {title}\n")[1] for title in TITLES)
    best = max(state.landed, key=lambda landed: landed.gain.gain)
    plan = state.experiments[best.experiment].plan
    assert plan is not None
    assert plan.technique in headline.strip().splitlines()[0]
    never = {e.plan.technique for e in state.judged if e.plan} - {
        e.plan.technique for e in state.judged if e.plan and e.verdict and e.verdict.kept
    }
    assert all(f"- {name}, " in failed for name in never)
    assert "next idea: " in remains


TITLES = ("Headline techniques", "What did not work", "What remains")


def test_a_hostile_tag_stays_harmless(tmp_path: Path) -> None:
    campaign(tmp_path, 3)
    state = read_story(tmp_path).state
    assert HOSTILE not in submission_note(state, submission(state, HOSTILE))
