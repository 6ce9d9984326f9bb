"""The queue of one cluster, read once for all callers.

slurmrestd 24.11 can filter jobs neither by node nor by state (its query has `update_time` and `flags` alone), and takes about a second for each
thousand of them before its first byte. So one list serves every pass for `KEPT` seconds, and at most one request runs at a time. No call waits longer
than `PATIENCE` seconds: a pass without the list does all that does not need it, and is requeued. After a long request fails, the next one is delayed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from soperator.slurm.job import CheckJob, SlurmJob
from soperator.slurmrest.errors import SlurmError

#: Seconds: how long a list is used, how long one call waits for it, and the delay after a failure that took longer than that wait.
KEPT, PATIENCE, PAUSE = 15.0, 5.0, 30.0


@dataclass(frozen=True)
class JobQueue:
    """The jobs that have nodes, and root's jobs of deep checks, including pending and ended ones."""

    running: tuple[SlurmJob, ...] = ()
    checks: tuple[CheckJob, ...] = ()


class JobList:
    """One cluster's queue; `load` requests it. Times are by the clock of the event loop."""

    def __init__(self, load: Callable[[], Awaitable[JobQueue]]) -> None:
        self._load = load
        self._task: asyncio.Task[JobQueue] | None = None
        #: When the last list was requested.
        self._asked = float("-inf")
        self._known: JobQueue | None = None
        self._dropper: asyncio.TimerHandle | None = None
        #: Why the last one failed, and until when that is the answer.
        self._failed: tuple[SlurmError, float] | None = None

    async def get(self, since: float = float("-inf")) -> JobQueue:
        """Return a list that was requested after `since`; raises SlurmError, also if it does not arrive within `PATIENCE` seconds."""
        end = _clock() + PATIENCE
        while True:
            if self._known is not None and self._asked > since:
                return self._known
            if self._task is None and self._failed is not None and _clock() < self._failed[1]:
                raise self._failed[0]
            is_new = self._task is None
            task, asked = self._begin(), self._asked
            done, _ = await asyncio.wait({task}, timeout=max(0.0, end - _clock()))
            if not done:
                raise SlurmError("the list of jobs has not arrived yet")
            if task.cancelled():
                raise SlurmError("the list of jobs was cancelled because the connection is closed")
            if is_new or asked > since:
                return task.result()

    def close(self) -> None:
        """Cancel the running request, and drop the list."""
        if self._task is not None:
            self._task.cancel()
        self._drop()

    def _begin(self) -> asyncio.Task[JobQueue]:
        """Return the running request, or a new one."""
        if self._task is None:
            self._drop()
            self._asked = _clock()
            self._task = asyncio.create_task(self._load_once(), name="jobs")
            self._task.add_done_callback(self._end)
        return self._task

    async def _load_once(self) -> JobQueue:
        return await self._load()

    def _end(self, task: asyncio.Task[JobQueue]) -> None:
        self._task = self._failed = None
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._known = task.result()
            self._dropper = task.get_loop().call_later(KEPT, self._drop)
        elif isinstance(error, SlurmError) and _clock() - self._asked > PATIENCE:
            self._failed = error, _clock() + PAUSE

    def _drop(self) -> None:
        """Drop the list: for fifty thousand running jobs it takes about forty megabytes."""
        self._known = None
        if self._dropper is not None:
            self._dropper.cancel()
            self._dropper = None


def _clock() -> float:
    return asyncio.get_running_loop().time()
