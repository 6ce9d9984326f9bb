"""How often progress is told."""

import pytest

from soperator.reconcile.io.status_throttle import (
    APART,
    EVERY,
    FIRST,
    LONGEST,
    StatusThrottle,
)


class Time:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


def test_news_is_written_at_once_and_progress_after_a_while():
    """The first progress waits a moment, the next for as long as it takes since the last write."""
    clock = Time()
    pace = StatusThrottle(clock)
    assert pace.wait("a", is_news=True) == 0.0
    assert pace.wait("a", is_news=False) == FIRST
    clock.now = FIRST
    assert pace.wait("a", is_news=False) == 0.0
    pace.wrote("a")
    assert pace.wait("a", is_news=False) == EVERY


def test_many_objects_take_turns():
    """Those that begin together write one after the other, and nobody waits for more than ten seconds for the others."""
    pace = StatusThrottle(Time())
    waits = [pace.wait(f"u{number}", is_news=False) for number in range(100)]
    assert waits == [FIRST + min(LONGEST, APART * number) for number in range(100)]
    assert max(waits) == FIRST + LONGEST == 10.4
    pace.wrote("u0")
    assert pace.wait("u0", is_news=False) == LONGEST


def test_who_is_alone_waits_for_nobody():
    """What others told long ago holds nobody up."""
    clock = Time()
    pace = StatusThrottle(clock)
    pace.wait("a", is_news=False)
    pace.wrote("a")
    clock.now = 60.0
    assert pace.wait("b", is_news=False) == pytest.approx(FIRST)
