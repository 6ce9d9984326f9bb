"""Decides whether a backup is due, and what happens with the Job of the last one.

A backup is due by a request that is not complete, by a time of the schedule since the last attempt, or after a failure. A new SlurmBackup with a
schedule makes its first backup at once, so that a mistake in it is found while its author looks. A SlurmBackup never has two Jobs: the Job of an
attempt is deleted before the next one is created. The attempts of two SlurmBackups into one repository are kept apart by restic's locks.
"""

from dataclasses import dataclass
from typing import Literal

from soperator.api.validation.schedule import last_start, next_start

#: Seconds after which a failed scheduled backup is repeated: restic takes a lock that a killed pod has left for valid until it is half an hour old.
RETRY = 2400.0

Phase = Literal["none", "running", "succeeded", "failed"]


@dataclass(frozen=True)
class Attempt:
    """The Job of the last attempt: its phase, when it was created in seconds since 1970, and the request that it carries out."""

    phase: Phase = "none"
    began: float = 0.0
    request: str = ""


@dataclass(frozen=True)
class BackupSnapshot:
    """What is known before a decision.

    Times are seconds since 1970. `carried_out` is the last completed request, `completed` are all of them; `attempted` and `succeeded` are
    when the last attempt and the last successful one began by the status, 0 if there was none; a Job that exists is more recent than the
    status.
    """

    now: float
    schedule: str = ""
    request: str = ""
    suspend: bool = False
    carried_out: str = ""
    attempted: float = 0.0
    succeeded: float = 0.0
    attempt: Attempt = Attempt()
    completed: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackupStep:
    """Whether a backup begins now, and for which request; when the schedule has the next time (infinity: never), and when to decide again."""

    begin: bool = False
    request: str = ""
    next: float = float("inf")
    again: float = float("inf")


def decide(seen: BackupSnapshot) -> BackupStep:
    """Return the next step."""
    upcoming = next_start(seen.schedule, seen.now) if seen.schedule and not seen.suspend else float("inf")
    if seen.attempt.phase == "running":
        return BackupStep(next=upcoming)
    if seen.suspend:
        return BackupStep()
    if seen.request and seen.request not in (seen.carried_out, seen.attempt.request, *seen.completed):
        return BackupStep(begin=True, request=seen.request, next=upcoming)
    last = max(seen.attempted, seen.attempt.began)
    has_failed = seen.attempt.phase == "failed" or (seen.attempt.phase == "none" and seen.succeeded < seen.attempted)
    retry = last + RETRY if has_failed and seen.schedule else float("inf")
    if (seen.schedule and last_start(seen.schedule, seen.now) > last) or retry <= seen.now:
        return BackupStep(begin=True, next=upcoming)
    return BackupStep(next=upcoming, again=min(upcoming, retry))
