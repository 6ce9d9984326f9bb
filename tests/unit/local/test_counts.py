"""Counts are judged on any machine; times are not."""

import pytest

from local.bench.counts import Measured, faults, verdict, without_time


def test_a_count_over_its_limit_is_named_and_a_time_is_not() -> None:
    """A figure whose limit stands elsewhere is nobody's fault either."""
    measured = [
        Measured("writes", "requests", 12, 10),
        Measured("lease", "per min", 12, 12),
        Measured("growth", "requests", 5000, None),
        Measured("start", "s", 99, 20),
    ]
    assert faults(measured) == ["writes: 12 requests, and 10 is the limit"]


@pytest.mark.parametrize(
    ("measured", "status"),
    [
        ([Measured("writes", "requests", 10, 10)], 0),
        ([Measured("writes", "requests", 11, 10)], 1),
        ([Measured("start", "s", 1, 20)], 1),
    ],
    ids=["within", "over", "nothing counted"],
)
def test_the_verdict_is_an_exit_status(measured: list[Measured], status: int) -> None:
    """A bench that counted nothing has proved nothing."""
    assert verdict(measured) == status


def test_a_slow_machine_adds_no_requests_to_a_scene() -> None:
    """Renewals of the Lease, Events and questions without an answer grow with the time that a scene takes, and writes of objects do not."""
    quick = {"requests: create": 1003.0, "requests: patch": 33.0, "requests: lease": 4.0, "requests: get": 43.0}
    slow = quick | {"requests: lease": 19.0, "requests: get": 116.0, "requests: event": 25.0}
    assert without_time(sum(slow.values()), slow) == without_time(sum(quick.values()), quick) == 1036.0
