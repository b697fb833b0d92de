"""``kernelteam eval``: times with an interval, several tasks by one judge, a sentence for each that is not fit."""

import json
from math import exp
from pathlib import Path

import pytest

from protocol.messages import Measurement, Outcome, Restart
from protocol.pairs import Pair
from team.cli import app
from team.devices.cpu import cpu_devices
from team.standing import times_of

TASK = """\
name = "{name}"
source = "twice.cpp"
[arguments]
x = {{ shape = ["n"] }}
y = {{ shape = ["n"] }}
[[workloads]]
name = "one"
dims = {{ n = 20000 }}
"""


def written(folder: Path, body: str) -> str:
    folder.mkdir()
    (folder / "task.toml").write_text(TASK.format(name=folder.name))
    (folder / "twice.cpp").write_text(f'extern "C" void solve(const float* x, float* y, int n) {{ {body} }}\n')
    (folder / "reference.py").write_text("def reference(x, y):\n    y.copy_(2 * x)\n")
    return str(folder)


def test_a_time_is_the_mean_of_the_processes_with_an_interval() -> None:
    sides = [(101.0, 110.0), (90.0, 99.0), (102.0, 100.0), (103.0, 97.0)]
    restarts = tuple(Restart.of({"a": [Pair(False, *both)] * 3}) for both in sides)
    measured = Measurement(outcome=Outcome.MEASURED, restarts=restarts, device=cpu_devices(1)[0].info())
    low, middle, high = times_of(measured)["a"]
    assert 99.0 < middle < 101.0
    assert 95.0 < low < middle < high < 105.0
    steady = tuple(Restart.of({"a": [Pair(False, exp(5), exp(5))]}) for _ in range(4))
    assert times_of(measured.model_copy(update={"restarts": steady}))["a"] == pytest.approx((exp(5),) * 3)


@pytest.mark.slow
def test_one_judge_tells_of_several_kernels_and_goes_on_after_a_wrong_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = "for (int i = 0; i < n; i++)"
    places = [
        written(tmp_path / "wrong", f"{loop} y[i] = 3 * x[i];"),
        written(tmp_path / "right", f"{loop} y[i] = 2 * x[i];"),
    ]
    assert app(["eval", *places, str(tmp_path / "none"), "--quick", "--json"], standalone_mode=False) == 2
    wrong, right, missing = map(json.loads, capsys.readouterr().out.splitlines())
    assert wrong["refused"].startswith("The baseline is broken (incorrect).")
    low, middle, high = right["workloads"]["one"]["nanoseconds"]
    assert 0.0 < low <= middle <= high
    assert right["floor"] is None
    assert missing["refused"].startswith("There is no folder")
