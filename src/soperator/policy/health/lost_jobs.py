"""Jobs that Slurm calls running although the container of slurmd, and all processes in it, ended after they had begun.

When slurmd registers, slurmctld compares its own jobs with the steps that slurmd has, and ends or requeues a batch job that is missing. But it passes
over jobs that began less than BatchStartTimeout and MessageTimeout ago (10 s each by default; job_mgr.c, _purge_missing_jobs), and a slurmd whose
container was killed is back before. Nobody looks again for minutes. So slurmd is told to register once more when all that ran before are old enough.
A registration ends no job that slurmd has, so nothing is lost where clocks differ.
"""

from collections.abc import Iterable

from soperator.policy.drain_reasons import stamp
from soperator.slurm.job import SlurmJob

#: Seconds: from the start of slurmd's container until it is to register once more, between two such requests, and until nobody looks any more.
WAIT, AGAIN, LONGEST = 30.0, 30.0, 900.0
#: Slurm tells whole seconds.
_SKEW = 1.0
_NAMED = 3


def ghosts(node: str, began: float, jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """The jobs of a node that began before the container of its slurmd did."""
    return [each for each in jobs if node in each.nodes and 0.0 < each.began < began - _SKEW]


def message(node: str, began: float, found: Iterable[SlurmJob]) -> str:
    """What is wrong there, and what is done about it."""
    known = [each.words for each in sorted(found, key=lambda each: each.number)]
    named = ", ".join(known[:_NAMED]) + (f" and {len(known) - _NAMED} more" if known[_NAMED:] else "")
    return (
        f"{node}: slurmd's container started again at {stamp(began)} and nothing runs there of what began before, but Slurm still counts "
        f"job {named} as running: slurmd registers once more, so that slurmctld ends or requeues it; if it stays, scontrol requeue or scancel it"
    )
