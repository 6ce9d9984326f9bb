"""The simulated day, with fewer jobs; `make bench-day` lives the whole one."""

from local.bench.day import Day
from local.bench.dayjobs import ideal, jobs

FEW = 60


def test_a_day_loses_no_job_and_lets_none_wait_for_what_it_could_have():
    """All end, nobody waits in vain, and the nodes cost little more than the jobs themselves."""
    todo = jobs(FEW)
    lived = Day(todo).run()
    assert (lived.ended, lived.needless) == (FEW, [])
    assert lived.node_hours < 1.3 * ideal(todo).node_hours


def test_the_day_is_the_same_each_time():
    """Its seed is checked in."""
    assert jobs(FEW) == jobs(FEW)
