"""Whose time a wake took, from slurmctld's own log."""

import pytest

from tests.soak.power import Wake, read_wake

DAY = "2026-11-22T11:"
LOG = f"""{DAY}22:00.500000000Z [x] Node owl-0 now responding
{DAY}23:09.180000000Z [x] sched/backfill: _start_job: Started JobId=1 in owl on owl-0
{DAY}23:09.200000000Z [x] sched/backfill: _start_job: Started JobId=11 in owl on owl-1
{DAY}23:10.000000000Z [x] Node owl-01 now responding
{DAY}23:20.180000000Z [x] Node owl-0 now responding
{DAY}23:38.180000000Z [x] job_time_limit: Configuration for JobId=1 complete
{DAY}23:38.180000000Z [x] Resetting JobId=1 start time for node power up
"""
SUBMITTED = 1795346588.18  # 11:23:08.18


def test_a_wake_is_read_in_four_parts_of_its_own_job_and_node():
    """Lines of other jobs, of other nodes and of a former wake are passed over."""
    wake = read_wake(LOG.splitlines(), "1", "owl-0", SUBMITTED, SUBMITTED + 31.0)
    assert [round(each, 3) for each in (wake.choose, wake.pod, wake.look, wake.launch)] == [1.0, 11.0, 18.0, 1.0]
    assert (round(wake.whole, 3), round(wake.slurms, 3)) == (31.0, 20.0)
    assert isinstance(wake, Wake)


def test_a_log_without_one_of_the_moments_is_refused():
    """A figure that is not there is not made up."""
    with pytest.raises(ValueError, match="Configuration for JobId=11"):
        read_wake(LOG.splitlines(), "11", "owl-01", SUBMITTED, SUBMITTED + 31.0)
