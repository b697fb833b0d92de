"""Errors as shares of their tolerances: by output, through the kept experiments, and when they creep."""

import pytest

from protocol.accuracy import Trail, errors_of
from protocol.messages import WorkloadCheck
from protocol.policy import Policy


def test_errors_are_told_by_output_where_they_are_known() -> None:
    new = WorkloadCheck(workload="big", checks=4, worst=0.5, outputs={"y": 0.5, "mask": 0.0})
    old = WorkloadCheck(workload="odd", checks=4, worst=0.25)
    assert errors_of((new, old)) == {("big", "y"): 0.5, ("big", "mask"): 0.0, ("odd", ""): 0.25}


@pytest.mark.parametrize(
    ("errors", "creeps"),
    [
        ((0.1, 0.3, 0.7), True),
        ((0.1, 0.3, 0.4), False),  # far from the tolerance
        ((0.7, 0.7, 0.7), False),  # as near as ever
        ((0.1, 0.9, 0.7), False),  # it was nearer before
        ((0.6, 0.5, 0.8), True),
        ((0.9,), False),
    ],
)
def test_what_creeps_towards_its_tolerance(errors: tuple[float, ...], creeps: bool) -> None:
    trail = Trail(("big", "y"), tuple(enumerate(errors, 1)))
    assert trail.creeps(Policy()) is creeps
    assert trail.last == errors[-1]
    assert trail.most == max(errors)
