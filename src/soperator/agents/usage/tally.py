"""Computes the CPU time of a job, from samples of its processes every few seconds.

The time of an ended process is lost in /proc, except that its parent has it in the time of its children. So the sum over a job's processes and their
waited-for children falls only if a process ends whose parent does not belong to the job. Such a process is a slurmstepd at the end of its step, which
received the time of its tasks. Only the time of that step since the last sample is then missing. With a cgroup the kernel counts, and nothing is
missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: A process: its number, and when it began, in ticks.
Key = tuple[int, int]


@dataclass(frozen=True)
class ProcessCpuTime:
    """The seconds of a process and its waited-for children, and its parent; None if the parent does not belong to the job."""

    seconds: float
    parent: Key | None


@dataclass(frozen=True)
class Snapshot:
    """A sample of a job: the CPU time of its processes, bytes of memory, the number of processes, its GPUs, and the seconds of its cgroup if it has
    one.
    """

    spent: Mapping[Key, ProcessCpuTime]
    memory: int = 0
    processes: int = 0
    gpus: frozenset[str] = field(default_factory=frozenset)
    exact: float | None = None


def gained(before: Snapshot | None, now: Snapshot) -> float:
    """Return the seconds that the job used between two samples; all of its known time in the first sample. Never negative."""
    if before and before.exact is not None and now.exact is not None:
        return max(0.0, now.exact - before.exact)
    if now.exact is not None and before is None:
        return now.exact
    known = before.spent if before else {}
    was = sum(each.seconds for key, each in known.items() if _still_counts(key, known, now.spent))
    return max(0.0, sum(each.seconds for each in now.spent.values()) - was)


def _still_counts(key: Key, known: Mapping[Key, ProcessCpuTime], now: Mapping[Key, ProcessCpuTime]) -> bool:
    """Return whether the current sum includes the time of a process: the process lives, or its nearest living ancestor has received it."""
    for _ in range(len(known)):
        if key in now:
            return True
        parent = known[key].parent
        if parent is None or parent not in known:
            return False
        key = parent
    return False


class Totals:
    """The CPU time of each job since its first sample, in seconds."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._last: dict[int, Snapshot] = {}

    def add(self, now: Mapping[int, Snapshot]) -> dict[int, float]:
        """Add a sample of all jobs, forget ended jobs, and return the seconds of each."""
        self._seconds = {
            job: self._seconds.get(job, 0.0) + gained(self._last.get(job), each) for job, each in now.items()
        }
        self._last = dict(now)
        return dict(self._seconds)
