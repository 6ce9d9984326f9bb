"""Schedules in the format of a Kubernetes CronJob, because people know it: five fields in UTC, with names of months and weekdays, or a macro such
as `@daily`.

Source of the meaning: cron(8) of Debian, by cronsim. If both day of month and day of week are restricted, either one is enough.
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
    """Return the fault of a schedule and the remedy as a message; empty for a valid schedule."""
    try:
        _expression(schedule, datetime.fromtimestamp(0, UTC))
    except CronSimError as error:
        return f"{str(error).lower()}: write minute, hour, day, month and weekday as in a CronJob, or a macro such as @daily"
    return ""


def last_start(schedule: str, now: float) -> float:
    """Return the last time of a schedule that is not later than `now`, both in seconds since 1970; minus infinity if there is none.

    An invalid schedule has no times.
    """
    minute = datetime.fromtimestamp(now // 60 * 60 + 60, UTC)
    try:
        found = next(_expression(schedule, minute), None)
    except CronSimError:
        return float("-inf")
    return found.timestamp() if found else float("-inf")


def next_start(schedule: str, now: float) -> float:
    """Return the first time of a schedule that is later than `now`, both in seconds since 1970; infinity if there is none.

    An invalid schedule has no times.
    """
    try:
        found = next(_expression(schedule, datetime.fromtimestamp(now, UTC), is_backward=False), None)
    except CronSimError:
        return float("inf")
    return found.timestamp() if found else float("inf")


def _expression(schedule: str, moment: datetime, is_backward: bool = True) -> CronSim:
    """Return the times of a schedule, backward or forward from a given time. Raises CronSimError for an invalid schedule."""
    return CronSim(_MACROS.get(schedule, schedule), moment, reverse=is_backward)
