"""Leader election by a Lease.

Only one replica may write. The replica that last replaced a Lease holds it, and of two replacements of the same resourceVersion the API server
accepts only one. The election relies on no shared clock. A standby takes a Lease over only if it was unchanged for its whole duration by the
standby's own monotonic clock. A leader that could not renew stops after ten seconds of the fifteen, counted from the start of its last successful
renewal, so that its body has ended before another replica can start.

The election also watches the body. An election that starts its body without awaiting it leaves a zombie when the body crashes: it renews for ever and
does nothing. Here the end of either one ends the other. The body is always awaited, and only then is the Lease released, so that the next replica
starts at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from soperator.kube.api import Api
from soperator.kube.errors import Conflict, KubeError, NotFound
from soperator.kube.kinds import LEASE
from soperator.kube.objects import Lease, LeaseSpec


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Durations in seconds: a Lease's validity, the interval of renewals, a leader's deadline to renew, and the interval of a standby's checks."""

    duration: float = 15.0
    renew: float = 5.5
    deadline: float = 10.0
    retry: float = 2.0
    random: Callable[[], float] = field(default=random.random)


class LostLease(Exception):  # noqa: N818
    """Another replica is the leader, or may be by now."""


@dataclass(frozen=True, slots=True)
class _Seen:
    version: str
    at: float


class Elector:
    """Competes for one Lease under one identity, which must be unique to the process."""

    def __init__(self, api: Api, lease: tuple[str, str], identity: str, terms: LeaseTimes | None = None) -> None:
        self._api = api
        self._namespace, self._name = lease
        self._identity = identity
        self._terms = terms or LeaseTimes()
        self._held: Lease | None = None
        self._log = structlog.get_logger().bind(lease=f"{self._namespace}/{self._name}", identity=identity)

    @property
    def is_leader(self) -> bool:
        """Whether this replica holds the Lease, as far as it knows."""
        return self._held is not None

    async def lead(self, body: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, run `body` while holding it, then release it.

        Returns when the body returns, and raises the body's errors. Raises LostLease if the Lease is lost, after the body was cancelled and awaited.
        """
        renewed = await self._acquire()
        self._log.info("leads")
        work = asyncio.ensure_future(body())
        renewal = asyncio.create_task(self._keep(renewed))
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if renewal.done() and not work.done():
                await _stop(work)
                await renewal
            await work
        finally:
            await _stop(work)
            await _stop(renewal)
            await self._release()

    async def _acquire(self) -> float:
        seen: _Seen | None = None
        while True:
            now = _now()
            try:
                lease = await self._read()
                if seen is None or lease is None or lease.metadata.resource_version != seen.version:
                    # An answer may be from its last moment: a leader may have renewed while it was on its way.
                    seen = _Seen(lease.metadata.resource_version if lease else "", _now())
                if self._is_free(lease, now - seen.at):
                    began = _now()  # of the write: how long the read took says nothing about the lease
                    async with asyncio.timeout(self._terms.renew):
                        await self._take(lease)
                    return began
            except Conflict:
                pass
            except (KubeError, TimeoutError) as error:
                self._log.warning("cannot read or take the lease", error=str(error))
            await asyncio.sleep(self._terms.retry * (1.0 + self._terms.random() * 0.2))

    async def _read(self) -> Lease | None:
        try:
            return await self._api.get(LEASE, Lease, self._namespace, self._name)
        except NotFound:
            return None

    def _is_free(self, lease: Lease | None, unchanged: float) -> bool:
        if lease is None or not lease.spec.holder_identity or lease.spec.holder_identity == self._identity:
            return True
        return unchanged > (lease.spec.lease_duration_seconds or self._terms.duration)

    async def _take(self, lease: Lease | None) -> None:
        if lease is None:
            body = self._body(None, self._identity)
            created = await self._api.create(LEASE, body)
            self._held = Lease(metadata=created.metadata, spec=msgspec.convert(body["spec"], LeaseSpec))
            return
        self._held = await self._api.replace(self._body(lease, self._identity, anew=True))

    async def _keep(self, renewed: float) -> None:
        """Renew until the Lease is lost; then raise LostLease."""
        terms = self._terms
        wait = max(0.0, renewed + terms.renew * (1.0 + terms.random() * 0.1) - _now())
        while True:
            await asyncio.sleep(wait)
            began = _now()
            try:
                async with asyncio.timeout(min(terms.renew, max(0.0, renewed + terms.deadline - began))):
                    await self._renew()
                renewed = began
                wait = terms.renew * (1.0 + terms.random() * 0.1)
            except (KubeError, TimeoutError) as error:
                if _now() - renewed >= terms.deadline:
                    raise LostLease(f"the lease could not be renewed for {terms.deadline:.0f} s: {error}") from error
                wait = min(1.0, terms.renew / 5)

    async def _renew(self) -> None:
        held = self._held
        if held is None:
            raise LostLease("the lease is not held")
        try:
            self._held = await self._api.replace(self._body(held, self._identity))
        except (Conflict, NotFound) as error:
            lease = await self._read()
            if lease is None or lease.spec.holder_identity != self._identity:
                self._held = None
                holder = lease.spec.holder_identity if lease else None
                raise LostLease(f"the lease is held by {holder or 'nobody'} now") from error
            self._held = lease
            raise

    async def _release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            async with asyncio.timeout(3.0):
                await self._api.replace(self._body(held, ""))
            self._log.info("released the lease")
        except (KubeError, TimeoutError) as error:
            self._log.warning("cannot release the lease; it will expire", error=str(error))

    def _body(self, lease: Lease | None, holder: str, anew: bool = False) -> dict[str, Any]:
        """Return the Lease with this holder.

        `anew` is True when a replica begins to lead: a former leader may have had the same name, in the same pod.
        """
        spec = lease.spec if lease is not None else None
        is_new = spec is None or spec.holder_identity != holder
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        transitions = (spec.lease_transitions or 0) if spec is not None else 0
        metadata = {"namespace": self._namespace, "name": self._name}
        if lease is not None:
            metadata["resourceVersion"] = lease.metadata.resource_version
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, int(self._terms.duration)),
                "acquireTime": now if anew or is_new or spec is None else spec.acquire_time,
                "renewTime": now,
                "leaseTransitions": transitions + (1 if is_new and holder and spec is not None else 0),
            },
        }


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _stop(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait for its end. Its result or error is dropped, unless somebody awaits it."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
