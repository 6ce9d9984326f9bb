"""Polls the Slurm nodes of each cluster once for all passes.

One poll per cluster fills a cache, however many NodeSets the cluster has. The cache drops an answer that is older than `FRESH` seconds: the policy
then treats every node as busy. A pass is queued only when an answer differs from the last one. A missing answer is reported only after `PATIENCE`
seconds, because a restart of slurmrestd is not worth a report.

slurmctld keeps a newly registered node only in memory until another event makes it save its state (docs/decisions/0042). So the operator makes
slurmctld save when an answer has new nodes.

slurmrestd needs half a second to list a thousand nodes, and a few milliseconds to report that none has changed (docs/decisions/0037). So the operator
asks for changes first. That relies on slurmctld's clock, so the operator also lists all nodes every `WHOLE` seconds. A cluster that answers slowly is
polled less often.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from soperator.runtime.cache.store import Key
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmDenied, SlurmError, SlurmRest

PERIOD = 2.0
FRESH = 15.0
PATIENCE = 5.0
WHOLE = 30.0
#: The pause after an answer, as a multiple of its duration, and at most in seconds.
PAUSE, LONGEST = 3.0, 5.0

Connect = Callable[[Key], Awaitable[SlurmRest]]


@dataclass
class PolledCluster:
    """The last answers of one cluster's slurmrestd."""

    task: asyncio.Task[None] | None = None
    client: SlurmRest | None = None
    nodes: Mapping[str, SlurmNode] = field(default_factory=dict)
    moment: int = 0
    version: str = ""
    looked: float = float("-inf")
    saved: frozenset[tuple[str, int]] = frozenset()
    began: float = 0.0
    answered: float = float("-inf")
    trouble: str = ""


class SlurmWatch:
    """Polls slurmrestd of each followed cluster, and calls `changed` with the key of a cluster whose answer has changed."""

    def __init__(self, connect: Connect, changed: Callable[[Key], None], period: float = PERIOD) -> None:
        self._connect = connect
        self._changed = changed
        self._period = period
        self._followed: dict[Key, PolledCluster] = {}

    def follow(self, key: Key) -> None:
        """Start polling a cluster, unless it is already polled."""
        if key not in self._followed:
            followed = self._followed[key] = PolledCluster(began=asyncio.get_running_loop().time())
            followed.task = asyncio.create_task(self._poll(key, followed), name=f"slurm {key[0]}/{key[1]}")

    def forget(self, key: Key) -> None:
        """Stop polling a cluster and forget its answers."""
        followed = self._followed.pop(key, None)
        if followed and followed.task:
            followed.task.cancel()

    def close(self) -> None:
        """Stop all polls."""
        for key in list(self._followed):
            self.forget(key)

    def nodes(self, key: Key) -> Mapping[str, SlurmNode] | None:
        """Return the Slurm nodes by name; None without a fresh answer."""
        followed = self._followed.get(key)
        if followed is None or asyncio.get_running_loop().time() - followed.answered > FRESH:
            return None
        return followed.nodes

    def version(self, key: Key) -> str:
        """Return the Slurm version in the last answer; empty before the first answer."""
        followed = self._followed.get(key)
        return followed.version if followed else ""

    def trouble(self, key: Key) -> str:
        """Return why slurmrestd gives no answer, as a message; empty while it answers."""
        followed = self._followed.get(key)
        return followed.trouble if followed else ""

    def client(self, key: Key) -> SlurmRest | None:
        """Return the client of a followed cluster; None until it is connected."""
        followed = self._followed.get(key)
        return followed.client if followed else None

    async def _poll(self, key: Key, followed: PolledCluster) -> None:
        try:
            clock = asyncio.get_running_loop().time
            while True:
                asked = clock()
                await self._once(key, followed)
                await asyncio.sleep(max(self._period, min(PAUSE * (clock() - asked), LONGEST)))
        finally:
            await self._drop(followed)

    async def _once(self, key: Key, followed: PolledCluster) -> None:
        before = (followed.nodes, followed.trouble, followed.version)
        try:
            followed.client = followed.client or await self._connect(key)
            await self._poll_once(followed, followed.client)
            followed.answered = asyncio.get_running_loop().time()
            followed.trouble = ""
        except SlurmDenied as error:  # the key may have been rotated: the next request uses the current one
            await self._drop(followed)
            self._fail(followed, str(error))
        except SlurmError as error:
            self._fail(followed, str(error))
        except Exception as error:  # a key that cannot be read is reported like a slurmrestd that does not answer
            self._fail(followed, f"cannot speak to slurmrestd: {error}")
        if before != (followed.nodes, followed.trouble, followed.version):
            self._changed(key)

    async def _drop(self, followed: PolledCluster) -> None:
        client, followed.client = followed.client, None
        if client:
            with contextlib.suppress(Exception):
                await client.close()

    async def _poll_once(self, followed: PolledCluster, client: SlurmRest) -> None:
        now = asyncio.get_running_loop().time()
        if now - followed.looked < WHOLE and not await client.has_changed(followed.moment):
            return
        seen = await client.fetch_nodes()
        followed.nodes, followed.looked, followed.version = seen.nodes, now, seen.version
        # A save that failed is tried again with the next answer.
        followed.moment = seen.moment if await _is_saved(client, followed) else 0

    def _fail(self, followed: PolledCluster, why: str) -> None:
        silent = asyncio.get_running_loop().time() - max(followed.answered, followed.began)
        if silent > PATIENCE and not followed.trouble:
            followed.trouble = why


async def _is_saved(client: SlurmRest, followed: PolledCluster) -> bool:
    """Make slurmctld save its nodes if at least one is new since the last save."""
    known = frozenset((node.name, node.started) for node in followed.nodes.values() if node.started)
    try:
        if new := known - followed.saved:
            await client.save(min(new)[0])
    except SlurmError:
        return False
    followed.saved = known
    return True
