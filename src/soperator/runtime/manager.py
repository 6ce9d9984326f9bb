"""Starts the parts of an operator, and stops them in order.

Every replica keeps its caches and queues up to date. Only the leader runs passes, and only once every cache is complete: to an incomplete cache,
everything that is missing looks deleted. Keys that changed meanwhile wait in the queues, so a new leader begins with one pass for each.

A stop has this order: no new pass begins, running passes get 25 s to end, the Lease is released, then the other tasks are cancelled. If any part
crashes, the same happens, and the process ends with exit code 1, so that Kubernetes restarts it.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from soperator.kube.api import Api
from soperator.runtime.cache.informer import OUTDATED, Informer
from soperator.runtime.controller import Controller
from soperator.runtime.events import Recorder
from soperator.runtime.lease import Elector, LostLease
from soperator.runtime.metrics import OperatorMetrics, QueueState, Sources
from soperator.runtime.server import build_app, serve
from soperator.runtime.workqueue import Queue

DRAIN = 25.0


@dataclass(frozen=True, kw_only=True)
class Manager:
    """The parts of an operator. Without an elector it leads at once; without a port it serves no HTTP."""

    api: Api
    reflectors: Sequence[Informer[Any]]
    controllers: Sequence[Controller]
    elector: Elector | None = None
    recorder: Recorder | None = None
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    port: int | None = None
    host: str = "0.0.0.0"
    drain: float = DRAIN

    def checks(self) -> dict[str, bool]:
        """Return for each cache whether it is complete and the API server has answered about it recently."""
        return {each.source.kind.plural: each.store.is_synced and each.age <= OUTDATED for each in self.reflectors}

    def sources(self) -> Sources:
        """Return the sources from which metrics are read."""
        return Sources(
            requests=lambda: self.api.requests,
            stores=lambda: {each.source.kind.plural: len(each.store) for each in self.reflectors},
            synced=lambda: {each.source.kind.plural: each.store.is_synced for each in self.reflectors},
            ages=lambda: {each.source.kind.plural: each.age for each in self.reflectors},
            relists=lambda: {each.source.kind.plural: each.relists for each in self.reflectors},
            queues=lambda: {each.name: _state_of(each.queue) for each in self.controllers},
            is_leader=lambda: self.elector is None or self.elector.is_leader,
        )


def _state_of(queue: Queue) -> QueueState:
    return QueueState(queue.depth, queue.active, queue.waiting, queue.failing)


async def run(manager: Manager, stop: asyncio.Event | None = None) -> int:
    """Run until SIGTERM or SIGINT, or until `stop` is set. Return the exit code: 0, or 1 after a failure."""
    stop = stop or asyncio.Event()
    log = structlog.get_logger()
    manager.metrics.read_from(manager.sources())
    code = 1
    async with _signals(stop), manager.api:
        try:
            async with _background_tasks(manager):
                await _lead(manager, stop)
            code = 0
            log.info("stopped")
        except* LostLease as lost:
            log.warning("stopped leading", error=str(lost.exceptions[0]))
        except* Exception:
            log.exception("a part of the operator crashed")
    return code


@contextlib.asynccontextmanager
async def _signals(stop: asyncio.Event) -> AsyncGenerator[None, None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _background_tasks(manager: Manager) -> AsyncGenerator[None, None]:
    """Run the tasks of every replica, leading or not, around the body."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(reflector.run(), name=f"{reflector.source.kind}") for reflector in manager.reflectors
        ]
        if manager.recorder is not None:
            tasks.append(group.create_task(manager.recorder.run(), name="events"))
        if manager.port is not None:
            app = build_app(manager.metrics.registry, manager.checks)
            tasks.append(group.create_task(serve(app, manager.host, manager.port), name="server"))  # type: ignore[arg-type]
        yield
        for task in tasks:
            task.cancel()


async def _lead(manager: Manager, stop: asyncio.Event) -> None:
    """Lead until `stop` is set; a standby returns at once."""
    leading = asyncio.Event()

    async def body() -> None:
        leading.set()
        await _control(manager, stop)

    elector = manager.elector
    lead = asyncio.ensure_future(elector.lead(body) if elector is not None else body())
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({lead, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if lead.done() or leading.is_set():
            await lead
    finally:
        stopped.cancel()
        lead.cancel()
        await asyncio.wait({lead})


async def _control(manager: Manager, stop: asyncio.Event) -> None:
    """Run the controllers once every cache is complete; when `stop` is set, let running passes end."""
    synced = asyncio.gather(*(reflector.store.wait_synced() for reflector in manager.reflectors))
    if not await _before(synced, stop):
        return
    work = asyncio.ensure_future(_controllers(manager))
    if await _before(work, stop):
        return
    for controller in manager.controllers:
        controller.queue.close()
    done, _ = await asyncio.wait({work}, timeout=manager.drain)
    if not done:
        structlog.get_logger().warning("passes are cut off", seconds=manager.drain)
        work.cancel()
        await asyncio.wait({work})
        return
    await work


async def _controllers(manager: Manager) -> None:
    async with asyncio.TaskGroup() as group:
        for controller in manager.controllers:
            group.create_task(controller.run(), name=controller.name)


async def _before(work: asyncio.Future[Any], stop: asyncio.Event) -> bool:
    """Await `work` and return True, or return False as soon as `stop` is set; cancelling this cancels the work."""
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.wait({work})
        raise
    finally:
        stopped.cancel()
    if work.done():
        await work
        return True
    return False
