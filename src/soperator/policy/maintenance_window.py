"""Computes when a maintenance window is open, from a schedule in UTC and a duration; the time is an argument, so that tests need no clock."""

from dataclasses import dataclass

from soperator.api.validation.schedule import last_start


@dataclass(frozen=True)
class WindowSchedule:
    """A schedule in UTC, and the seconds for which the window stays open."""

    schedule: str
    seconds: float

    def is_open(self, now: float) -> bool:
        """Return whether the window opened within the last `seconds`."""
        return now - last_start(self.schedule, now) < self.seconds


def latest(schedule: str, now: float, since: float) -> float | None:
    """Return the last time of a schedule that is later than `since` and not later than `now`, in seconds since 1970; None if there is none."""
    found = last_start(schedule, now)
    return found if found > since else None
