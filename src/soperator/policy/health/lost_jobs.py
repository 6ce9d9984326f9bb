"""Finds jobs that Slurm reports as running although slurmd's container ended, with all its processes, after they had started.

When slurmd registers, slurmctld compares its own jobs with the steps that slurmd has, and ends or requeues a batch job that is missing. But it skips
jobs that started less than BatchStartTimeout and MessageTimeout ago (10 s each by default; job_mgr.c, _purge_missing_jobs), and a slurmd whose
container was killed registers sooner. slurmctld does not compare again for minutes. So the operator makes slurmd register again when all of those
jobs are old enough. A registration ends no job that slurmd has, so a difference of clocks loses nothing.
"""

from collections.abc import Iterable

from soperator.policy.drain_reasons import stamp
from soperator.slurm.job import SlurmJob

#: Seconds: from the start of slurmd's container until it has to register again, between two such requests, and until the operator stops looking.
WAIT, AGAIN, LONGEST = 30.0, 30.0, 900.0
#: Slurm reports whole seconds.
_SKEW = 1.0
_NAMED = 3


def jobs_older_than_container(node: str, began: float, jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """Return the jobs of a node that started before the container of its slurmd did."""
    return [each for each in jobs if node in each.nodes and 0.0 < each.began < began - _SKEW]


def message(node: str, began: float, found: Iterable[SlurmJob]) -> str:
    """Return the message about the fault and the operator's remedy."""
    known = [each.words for each in sorted(found, key=lambda each: each.number)]
    named = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more" if known[_NAMED:] else "")
    return (
        f"{node}: slurmd's container restarted at {stamp(began)} and no earlier process runs there, but Slurm still "
        f"counts job {named} as running: slurmd registers again, so that slurmctld ends or requeues it; if it stays, "
        "use scontrol requeue or scancel"
    )
