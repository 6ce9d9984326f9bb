"""When a backup begins."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.backup.schedule import RETRY, Attempt, BackupSnapshot, decide

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp()
MIDNIGHT = NOON - 43200


def test_a_new_schedule_begins_a_backup_at_once():
    """The first backup of a schedule does not wait for its time."""
    step = decide(BackupSnapshot(NOON, schedule="@daily"))
    assert (step.begin, step.next) == (True, MIDNIGHT + 86400)


def test_a_backup_is_due_once_for_each_time_of_the_schedule():
    """After an attempt since the last time of the schedule the next one waits for the next time."""
    step = decide(BackupSnapshot(NOON, schedule="@daily", attempted=MIDNIGHT + 5, succeeded=MIDNIGHT + 5))
    assert (step.begin, step.again) == (False, MIDNIGHT + 86400)
    assert decide(BackupSnapshot(NOON, schedule="@daily", attempted=MIDNIGHT - 5)).begin


def test_a_job_is_more_recent_than_the_status():
    """A backup does not begin again because its status was not written."""
    attempt = Attempt("succeeded", MIDNIGHT + 5)
    assert not decide(BackupSnapshot(NOON, schedule="@daily", attempt=attempt)).begin


@pytest.mark.parametrize("attempt", [Attempt(), Attempt("succeeded", NOON - 60), Attempt("failed", NOON - 60)])
def test_a_request_begins_a_backup_without_a_schedule(attempt):
    """Any new word begins one, whatever became of the last attempt."""
    step = decide(BackupSnapshot(NOON, request="now", carried_out="before", attempt=attempt))
    assert (step.begin, step.request) == (True, "now")


@pytest.mark.parametrize(
    "seen",
    [
        BackupSnapshot(NOON, request="now", carried_out="now"),
        BackupSnapshot(NOON, request="now", attempt=Attempt("failed", NOON - 5 * RETRY, "now")),
        BackupSnapshot(NOON, request="now", suspend=True),
        BackupSnapshot(NOON, schedule="@daily", suspend=True),
        BackupSnapshot(NOON),
    ],
)
def test_nothing_begins_without_a_cause(seen):
    """A request is carried out once, a failed one is not repeated, and a suspended SlurmBackup makes none."""
    assert not decide(seen).begin


def test_a_failed_backup_of_a_schedule_is_repeated():
    """It is repeated after a while, and not before."""
    seen = BackupSnapshot(NOON, schedule="@daily", attempt=Attempt("failed", NOON - RETRY + 1))
    assert (decide(seen).begin, decide(seen).again) == (False, NOON + 1)
    assert decide(BackupSnapshot(NOON, schedule="@daily", attempt=Attempt("failed", NOON - RETRY))).begin


def test_a_failure_is_known_without_its_job():
    """The Job of a failed attempt is deleted before the next one is created, and an operator that ends in between goes on."""
    seen = BackupSnapshot(NOON, schedule="@daily", attempted=NOON - RETRY, succeeded=MIDNIGHT - 86400)
    assert decide(seen).begin
    assert not decide(replace(seen, succeeded=seen.attempted)).begin


@given(
    now=st.floats(0, 4e9),
    schedule=st.sampled_from(["", "@daily", "* * * * *", "0 0 30 2 *"]),
    request=st.sampled_from(["", "a", "b"]),
    attempted=st.floats(0, 4e9),
    began=st.floats(0, 4e9),
)
def test_there_are_never_two_backups_at_once(now, schedule, request, attempted, began):
    """While a Job runs, nothing begins."""
    attempt = Attempt("running", began, "a")
    assert not decide(BackupSnapshot(now, schedule, request, False, "", attempted, 0.0, attempt)).begin
