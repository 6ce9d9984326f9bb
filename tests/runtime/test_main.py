"""A whole operator on a real API server: restart of the server, lost Lease, silence when idle."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from soperator.kube.api import Api
from soperator.kube.kinds import CONFIGMAP, LEASE
from soperator.kube.objects import Lease
from soperator.kube.views import Meta
from soperator.runtime.cache.informer import Informer, InformerPace, InformerSource
from soperator.runtime.cache.store import Key, Store, key_of
from soperator.runtime.controller import Controller, PassOutcome
from soperator.runtime.lease import Elector
from soperator.runtime.manager import Manager, run
from tests.runtime.server import ControlPlane
from tests.unit.fake_api import eventually
from tests.unit.objects import make


@dataclass
class Replica:
    """An operator whose passes only note their keys."""

    api: Api
    namespace: str
    name: str = "one"
    passes: list[str] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    store: Store[Meta] = field(default_factory=Store)
    elector: Elector = field(init=False)
    task: asyncio.Task[int] = field(init=False)

    def __post_init__(self) -> None:
        pace = InformerPace(connect=0.2, first=0.2, longest=1.0)
        reflector = Informer(self.api, InformerSource(CONFIGMAP, Meta, self.namespace), self.store, pace)
        controller = Controller("c", self.reconcile)
        reflector.feed(controller.queue, lambda obj: [key_of(obj)])
        self.elector = Elector(self.api, (self.namespace, "lock"), self.name)
        manager = Manager(api=self.api, reflectors=[reflector], controllers=[controller], elector=self.elector)
        self.task = asyncio.create_task(run(manager, self.stop))

    async def reconcile(self, key: Key) -> PassOutcome:
        """Note the key."""
        self.passes.append(key[1])
        return PassOutcome("done")


@asynccontextmanager
async def replica(plane: ControlPlane, namespace: str, name: str = "one") -> AsyncIterator[Replica]:
    """Yield a running operator, and stop it."""
    one = Replica(plane.api(), namespace, name)
    try:
        yield one
    finally:
        one.stop.set()
        await one.task


async def test_an_operator_is_ready_at_once_and_silent_when_idle(plane: ControlPlane, api: Api, namespace: str) -> None:
    """It leads and has run its passes within a second, and then sends nothing but renewals."""
    await api.create(CONFIGMAP, make(CONFIGMAP, "a", namespace))
    began = time.perf_counter()
    async with replica(plane, namespace) as one:
        await eventually(lambda: one.passes == ["a"], 5)
        assert time.perf_counter() - began < 1.0
        await asyncio.sleep(0.3)
        before = Counter(one.api.requests)
        await asyncio.sleep(6)
        assert one.api.requests - before == {("update", "Lease", 200): 1}


async def test_a_handover_takes_seconds(plane: ControlPlane, api: Api, namespace: str) -> None:
    """A leader that stops releases its Lease, and the standby leads at its next look."""
    await api.create(CONFIGMAP, make(CONFIGMAP, "a", namespace))
    async with replica(plane, namespace, "two") as two, replica(plane, namespace, "one") as one:
        await eventually(lambda: one.elector.is_leader or two.elector.is_leader, 5)
        first, second = (one, two) if one.elector.is_leader else (two, one)
        await eventually(lambda: first.passes == ["a"], 5)
        assert second.passes == []
        first.stop.set()
        assert await first.task == 0
        await eventually(lambda: second.passes == ["a"], 4)


async def test_a_lost_lease_ends_the_operator(plane: ControlPlane, api: Api, namespace: str) -> None:
    """Another holder's name in the Lease makes the next renewal fail, and the operator stop with 1."""
    async with replica(plane, namespace) as one:
        await eventually(lambda: one.elector.is_leader, 5)
        spec = {"holderIdentity": "thief", "leaseDurationSeconds": 15}
        await api.apply(LEASE, make(LEASE, "lock", namespace, spec=spec))
        async with asyncio.timeout(8):
            assert await one.task == 1
    lease = await api.get(LEASE, Lease, namespace, "lock")
    assert lease.spec.holder_identity == "thief"


async def test_a_restart_of_the_api_server_is_survived(plane: ControlPlane, namespace: str) -> None:
    """The leader keeps its Lease, the cache catches up with what happened after, and passes run."""
    async with plane.api() as api, replica(plane, namespace) as one:
        await api.create(CONFIGMAP, make(CONFIGMAP, "a", namespace))
        await eventually(lambda: one.passes == ["a"], 5)
        plane.stop_apiserver()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(plane.start_apiserver)
        await api.delete(CONFIGMAP, namespace, "a")
        await api.create(CONFIGMAP, make(CONFIGMAP, "b", namespace))
        await eventually(lambda: [each.metadata.name for each in one.store.all()] == ["b"], 10)
        await eventually(lambda: one.passes[-1] == "b", 5)
        assert not one.task.done()
        assert one.elector.is_leader
