"""Counts are judged on any machine; times are not."""

import pytest

from local.bench.counts import Measured, faults, verdict


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
