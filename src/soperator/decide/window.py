"""When a maintenance window is open: a CronJob's schedule in UTC, and a duration.

Source of the meaning: cron(8). Where both day of month and day of week are restricted, either one is enough.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SPANS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


@dataclass(frozen=True)
class Hours:
    """A schedule of five fields, and for how many seconds the window stays open."""

    schedule: str
    seconds: float

    def is_open(self, now: float) -> bool:
        """Whether the window opened within the last `seconds`."""
        fields = [_numbers(text, *span) for text, span in zip(self.schedule.split(), _SPANS, strict=True)]
        moment = datetime.fromtimestamp(now, UTC).replace(second=0, microsecond=0)
        for _ in range(int(self.seconds // 60) + 1):
            if _begins(moment, fields, self.schedule) and now - moment.timestamp() < self.seconds:
                return True
            moment -= timedelta(minutes=1)
        return False


def latest(schedule: str, now: float, since: float) -> float | None:
    """The last moment of a schedule that is later than `since` and not later than `now`; None where there is none within a year."""
    fields = [_numbers(text, *span) for text, span in zip(schedule.split(), _SPANS, strict=True)]
    minutes, hours = sorted(fields[0], reverse=True), sorted(fields[1], reverse=True)
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(366):
        if _begins(day.replace(hour=hours[0], minute=minutes[0]), fields, schedule):
            moments = (
                (day + timedelta(hours=hour, minutes=minute)).timestamp() for hour in hours for minute in minutes
            )
            if (found := next((each for each in moments if each <= now), None)) is not None:
                return found if found > since else None
        if day.timestamp() <= since:
            return None
        day -= timedelta(days=1)
    return None


def _begins(moment: datetime, fields: list[frozenset[int]], schedule: str) -> bool:
    minutes, hours, days, months, weekdays = fields
    if moment.minute not in minutes or moment.hour not in hours or moment.month not in months:
        return False
    _, _, day_text, _, weekday_text = schedule.split()
    on_day, on_weekday = moment.day in days, moment.isoweekday() % 7 in {each % 7 for each in weekdays}
    if day_text.startswith("*") or weekday_text.startswith("*"):
        return on_day and on_weekday
    return on_day or on_weekday


def _numbers(text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        begin = low if span == "*" else int(first)
        end = high if span == "*" or (slash and not dash) else int(last or first)
        found |= set(range(begin, end + 1, max(1, int(step or 1))))
    return frozenset(found)
