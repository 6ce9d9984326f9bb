"""Makes slurmctld detect jobs whose processes ended with slurmd's container: see `policy/health/lost_jobs`."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from soperator.policy.health import lost_jobs
from soperator.policy.workers.types import Register, WorkerSnapshot
from soperator.reconcile import inputs
from soperator.reconcile.cache.per_object import Slot, per_pod
from soperator.reconcile.cache.workers import Worker
from soperator.reconcile.nodeset.actions import Workers
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmError

#: When slurmd of a pod had started that was found to have lost no job, in seconds since 1970.
_CLEARED: Slot[str, float] = per_pod("starts of slurmd after which no job was lost")
#: Seconds until the next look where the jobs could not be listed.
_SOON = 5.0


@dataclass(frozen=True)
class LostJobs:
    """The lost jobs, as one sentence per node, and the seconds until the next check."""

    said: str = ""
    again: float | None = None


async def find_lost_jobs(workers: Workers, seen: WorkerSnapshot) -> LostJobs:
    """Check once each worker whose slurmd started recently. A worker with a lost job registers again until Slurm has ended the job."""
    now = workers.operator.wall()
    young = [each for each in _young(workers, now) if each.seen and each.seen.ready]
    again = [lost_jobs.WAIT - (now - each.began) for each in young if now - each.began < lost_jobs.WAIT]
    due = [each for each in young if now - each.began >= lost_jobs.WAIT]
    busy = [each for each in due if (node := _node(seen, each)) and node.is_busy]
    if seen.nodes is not None:
        _clear(workers, (each for each in due if each not in busy))
    found = LostJobs(again=min(again, default=None))
    if not busy or workers.client is None:
        return found
    latest = asyncio.get_running_loop().time() - min(now - each.began for each in busy)
    try:
        jobs = await workers.client.jobs(latest)
    except SlurmError:
        return LostJobs(again=min([_SOON, *again]))
    wrong = {
        each.pod.metadata.uid: lost_jobs.jobs_older_than_container(_name(seen, each), each.began, jobs) for each in busy
    }
    _clear(workers, (each for each in busy if not wrong[each.pod.metadata.uid]))
    said = [
        await _register(workers, seen, each, wrong[each.pod.metadata.uid], now)
        for each in busy
        if wrong[each.pod.metadata.uid]
    ]
    return LostJobs("; ".join(said), min([lost_jobs.AGAIN / 2, *again])) if said else found


def _young(workers: Workers, now: float) -> Iterator[Worker]:
    """Yield the workers whose slurmd started recently and that were not checked since."""
    cleared = workers.operator.memory(_CLEARED)
    for each in inputs.worker_set(workers.operator, workers.nodeset).workers:
        if now - each.began < lost_jobs.LONGEST and cleared.get(each.pod.metadata.uid) != each.began:
            yield each


def _clear(workers: Workers, done: Iterable[Worker]) -> None:
    """Note that no lost job from before this start is left; no further one can appear."""
    workers.operator.memory(_CLEARED).update({each.pod.metadata.uid: each.began for each in done})


async def _register(workers: Workers, seen: WorkerSnapshot, each: Worker, jobs: Sequence[SlurmJob], now: float) -> str:
    said = lost_jobs.message(_name(seen, each), each.began, jobs)
    last = max(workers.operator.memory(inputs.REGISTERED).get(each.pod.metadata.uid, 0.0), each.began)
    if each.seen is None or now - last < lost_jobs.AGAIN:
        return said
    refused = await workers.take([Register(each.seen.index, said)], seen)
    return f"{said} ({refused})" if refused else said


def _name(seen: WorkerSnapshot, each: Worker) -> str:
    return seen.name(each.seen.index) if each.seen else ""


def _node(seen: WorkerSnapshot, each: Worker) -> SlurmNode | None:
    return seen.node(each.seen.index) if each.seen else None
