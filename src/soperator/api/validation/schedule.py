"""Schedules as a Kubernetes CronJob has them: five fields in UTC with names of months and weekdays, or `@daily` and its like.

Source of the meaning: cron(8) of Debian, by cronsim. Where both day of month and day of week are restricted, either one is enough.
"""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

SCHEDULE = r"^(@[a-z]+|[0-9A-Za-z*/,#-]+( [0-9A-Za-z*/,#-]+){4})$"
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def schedule_fault(schedule: str) -> str:
    """Return what is wrong with a schedule, and what to write instead; empty for a valid one."""
    try:
        _expression(schedule, datetime.fromtimestamp(0, UTC))
    except CronSimError as error:
        return f"{str(error).lower()}: write minute, hour, day, month and weekday as a CronJob does, or @daily and its like"
    return ""


def last_start(schedule: str, now: float) -> float:
    """Return the last moment of a schedule that is not later than `now`, both in seconds since 1970; minus infinity where there is none.

    A schedule with a fault never starts.
    """
    minute = datetime.fromtimestamp(now // 60 * 60 + 60, UTC)
    try:
        found = next(_expression(schedule, minute), None)
    except CronSimError:
        return float("-inf")
    return found.timestamp() if found else float("-inf")


def _expression(schedule: str, moment: datetime) -> CronSim:
    """Return the times of a schedule, backward from a given time. Raises CronSimError for an invalid schedule."""
    return CronSim(_MACROS.get(schedule, schedule), moment, reverse=True)
