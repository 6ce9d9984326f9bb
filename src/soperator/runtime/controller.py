"""Runs the passes of a controller.

A pass gets only a key, so that it cannot depend on the event that queued it. It ends in one of four ways: it returns a message about the state, and
when to run again; it is refused, and runs again when somebody changes the object or after minutes (`PermanentError`); it fails temporarily and is
retried with back-off; or it is stopped after 300 s, which counts as a failure. The message is logged only if it differs from the last one of the key,
so that an idle operator writes no log.

After a pass its key rests, by default for four times the CPU time that elapsed: a pass over five thousand pods, each of which queues it, would leave
no time for anything else, while one over five is not delayed. The CPU time of other passes counts too, so a busy operator collects more events into
each pass.

A pass that has lasted for `SLOW` seconds waits for an answer, mostly from a container of the object's owner. It no longer counts towards the limit of
parallel passes, so that a few clusters whose slurmctld hangs do not delay the others.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog

from soperator.kube.errors import ApiError, KubeError
from soperator.runtime.cache.store import Key
from soperator.runtime.metrics import OperatorMetrics
from soperator.runtime.workqueue import Queue

#: The rest after a pass, in times of the CPU seconds that it took, and at most in seconds.
REST, LONGEST_REST = 4.0, 0.5
#: Seconds after which another pass may begin beside one that waits, and the most passes of a controller at once, with those that wait.
SLOW, MOST = 10.0, 64
#: Seconds after which what was refused for good is tried once more: an admission policy refuses in the same words as a schema, and may have changed.
REFUSED = 300.0


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """The result of a pass: a message, the seconds until the next pass, and whether the object no longer exists."""

    message: str
    requeue_after: float | None = None
    is_gone: bool = False


class PermanentError(Exception):
    """An error that a retry cannot solve: the pass waits until the object changes, or for minutes. The message is for the user."""


class TransientError(Exception):
    """A temporary failure of a pass, with its cause as the message; the pass is retried with back-off."""


Reconcile = Callable[[Key], Awaitable[PassOutcome]]
Tell = Callable[[Key, Exception], Awaitable[None]]
Result = Literal["ok", "failed", "terminal"]


@dataclass
class Controller:
    """Processes the keys of a queue. `tell`, if given, is called with each error, to report it in the object's status.

    After a pass its key rests for `rest` times the CPU time that elapsed.
    """

    name: str
    reconcile: Reconcile
    queue: Queue = field(default_factory=Queue)
    workers: int = 4
    timeout: float = 300.0
    rest: float = REST
    tell: Tell | None = None
    metrics: OperatorMetrics | None = None
    _said: dict[Key, str] = field(default_factory=dict, init=False, repr=False)

    async def run(self) -> None:
        """Process keys until the queue is closed and every started pass has ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(self.workers):
                group.create_task(self._work(group), name=f"{self.name}-{number}")

    async def _work(self, group: asyncio.TaskGroup) -> None:
        """Process keys. A worker whose pass is slow is replaced by another worker, and ends with that pass."""
        successor: list[asyncio.Task[None]] = []
        worker = asyncio.current_task()

        def replace() -> None:
            if self.queue.active < MOST and worker is not None and not worker.cancelling():
                successor.append(group.create_task(self._work(group), name=f"{self.name}-more"))

        while not successor and (key := await self.queue.get()) is not None:
            timer = asyncio.get_running_loop().call_later(SLOW, replace)
            try:
                with structlog.contextvars.bound_contextvars(controller=self.name, key="/".join(key)):
                    await self.once(key)
            finally:
                timer.cancel()

    async def once(self, key: Key) -> None:
        """Run one pass on a key from the queue, and return the key to the queue."""
        began, busy = time.perf_counter(), time.thread_time()
        result: Result = "failed"
        failed, last, again = True, False, None
        try:
            async with asyncio.timeout(self.timeout):
                outcome = await self.reconcile(key)
            result, failed, last, again = "ok", False, outcome.is_gone, outcome.requeue_after
            self._log(key, outcome)
        except PermanentError as error:
            result, failed, again = "terminal", False, REFUSED
            await self._failed(key, error, str(error))
        except TimeoutError as error:
            await self._failed(key, error, f"the pass was stopped after {self.timeout:.0f} s")
        except Exception as error:
            again = error.retry_after if isinstance(error, ApiError) else None
            await self._failed(key, error, f"{error}" or repr(error))
        finally:
            rest = 0.0 if last else min(LONGEST_REST, self.rest * (time.thread_time() - busy))
            self.queue.done(key, failed=failed, again=again, rest=rest)
            self._count(result, time.perf_counter() - began)

    def _count(self, result: Result, seconds: float) -> None:
        if self.metrics is not None:
            self.metrics.passes.labels(self.name, result).inc()
            self.metrics.seconds.labels(self.name).observe(seconds)

    def _log(self, key: Key, outcome: PassOutcome) -> None:
        if self._said.get(key) != outcome.message:
            structlog.get_logger().info(outcome.message, again=outcome.requeue_after)
        if outcome.is_gone:
            self._said.pop(key, None)
        else:
            self._said[key] = outcome.message

    async def _failed(self, key: Key, error: Exception, said: str) -> None:
        expected = isinstance(error, KubeError | PermanentError | TransientError | TimeoutError)
        log = structlog.get_logger()
        if expected and self._said.get(key) != said:
            log.warning(said, failures=self.queue.failures(key) + 1)
        elif not expected:
            log.error(said, exc_info=error)
        self._said[key] = said
        if self.tell is None:
            return
        try:
            async with asyncio.timeout(30.0):
                await self.tell(key, error)
        except Exception as second:
            log.warning("cannot report the error in the object's status", error=str(second))
