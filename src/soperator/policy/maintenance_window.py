"""When a maintenance window is open: a schedule in UTC, and a duration."""

from dataclasses import dataclass

from soperator.api.validation.schedule import last_start


@dataclass(frozen=True)
class Hours:
    """A schedule, and for how many seconds the window stays open."""

    schedule: str
    seconds: float

    def is_open(self, now: float) -> bool:
        """Return whether the window opened within the last `seconds`."""
        return now - last_start(self.schedule, now) < self.seconds


def latest(schedule: str, now: float, since: float) -> float | None:
    """Return the last moment of a schedule that is later than `since` and not later than `now`; None where there is none."""
    found = last_start(schedule, now)
    return found if found > since else None
