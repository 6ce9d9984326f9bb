"""Decides whether the value of a request is new.

The value of a request names it. `helm rollback` and `git revert` bring former values back, although nobody wants the action again: a new key, a
replaced jail or another run of a check. So each request has a list of completed values, and a value in it is not carried out again.
"""

from collections.abc import Sequence

#: How many completed values are remembered; an older one counts as new.
MOST = 32


def is_repeated(value: str, completed: Sequence[str]) -> bool:
    """Return whether the value was completed before the last request. The value of the last request itself is only unchanged."""
    return value in completed[:-1]


def with_completed(completed: Sequence[str], value: str) -> list[str]:
    """Return the completed values, the newest last, after this one was completed; an empty value is no request."""
    if not value or value in completed:
        return list(completed)
    return [*completed, value][-MOST:]


def repeated_message(field: str, value: str) -> str:
    """Return that the value of this field is not carried out, and the remedy."""
    return f"{field} {value} was carried out before and is not carried out again: give a new value"
