"""The whole assembly: start, standby, stop, crash."""

import asyncio
import os
import signal
from dataclasses import dataclass, field

import pytest

from soperator.kube.kinds import CONFIGMAP, LEASE, SECRET
from soperator.kube.views import Meta
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Key, Store, key_of
from soperator.runtime.controller import Controller, PassOutcome
from soperator.runtime.lease import Elector
from soperator.runtime.manager import Manager, run
from tests.unit.fake_api import FakeApi, eventually
from tests.unit.fake_world import Fault
from tests.unit.objects import make

pytestmark = pytest.mark.looptime


@dataclass
class Replica:
    """One operator process on a fake server, whose passes take `slow` seconds."""

    server: FakeApi
    name: str = "one"
    slow: float = 0.0
    passes: list[str] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[int] = field(init=False)

    def __post_init__(self) -> None:
        api = self.server.api()
        reflector = Informer(api, InformerSource(CONFIGMAP, Meta), Store())
        other = Informer(api, InformerSource(SECRET, Meta), Store())
        controller = Controller("c", self.reconcile)
        reflector.feed(controller.queue, lambda obj: [key_of(obj)])
        elector = Elector(api, ("ns", "lock"), self.name)
        manager = Manager(api=api, reflectors=[reflector, other], controllers=[controller], elector=elector)
        self.task = asyncio.create_task(run(manager, self.stop))

    async def reconcile(self, key: Key) -> PassOutcome:
        """Take a while."""
        await asyncio.sleep(self.slow)
        self.passes.append(key[1])
        return PassOutcome("done")


def server() -> FakeApi:
    """Return a server with two ConfigMaps."""
    server = FakeApi()
    for name in "ab":
        server.world.seed(make(CONFIGMAP, name))
    return server


async def test_passes_begin_when_caches_are_whole_and_the_lease_is_held() -> None:
    """A leader runs one pass for each object that there is."""
    world = server()
    world.faults.append(Fault(verb="list", plural="secrets", status=500, times=3))
    one = Replica(world)
    await asyncio.sleep(0.7)
    assert one.passes == []
    await eventually(lambda: sorted(one.passes) == ["a", "b"], 5)
    one.stop.set()
    assert await one.task == 0


async def test_a_standby_takes_over_at_once_and_sees_everything() -> None:
    """When the leader stops, the standby runs one pass for each key from its warm cache."""
    world = server()
    one = Replica(world)
    await eventually(lambda: len(one.passes) == 2)
    two = Replica(world, "two")
    await asyncio.sleep(5)
    assert two.passes == []
    lists = len(world.asked("list"))
    one.stop.set()
    assert await one.task == 0
    await eventually(lambda: sorted(two.passes) == ["a", "b"], 3)
    assert len(world.asked("list")) == lists
    two.stop.set()
    await two.task


async def test_running_passes_end_before_the_lease_is_released() -> None:
    """A stop lets passes finish, however many seconds of the 25 they need."""
    world = server()
    one = Replica(world, slow=20)
    await asyncio.sleep(1)
    one.stop.set()
    await asyncio.sleep(10)
    assert world.world.find(LEASE, "ns", "lock")["spec"]["holderIdentity"] == "one"  # type: ignore[index]
    assert await one.task == 0
    assert sorted(one.passes) == ["a", "b"]
    assert world.world.find(LEASE, "ns", "lock")["spec"]["holderIdentity"] == ""  # type: ignore[index]


async def test_a_pass_that_does_not_end_is_cut_off() -> None:
    """After 25 s the operator stops anyway, in good order."""
    one = Replica(server(), slow=1000)
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    one.stop.set()
    assert await one.task == 0
    assert asyncio.get_running_loop().time() - began == pytest.approx(25, abs=0.5)


async def test_a_standby_stops_at_once() -> None:
    """A replica that does not lead has nothing to wait for."""
    world = server()
    one = Replica(world)
    await eventually(lambda: len(one.passes) == 2)
    two = Replica(world, "two")
    await asyncio.sleep(3)
    began = asyncio.get_running_loop().time()
    two.stop.set()
    assert await two.task == 0
    assert asyncio.get_running_loop().time() - began < 0.1
    one.stop.set()
    await one.task


async def test_a_lost_lease_ends_the_process_with_1() -> None:
    """A replica whose Lease was taken stops, for Kubernetes to start it again."""
    world = server()
    one = Replica(world)
    await eventually(lambda: len(one.passes) == 2)
    world.world.change(LEASE, ("ns", "lock"), {"spec": {"holderIdentity": "two"}})
    assert await one.task == 1


async def test_a_crashed_part_ends_the_process_with_1_and_frees_the_lease() -> None:
    """A bug in a listener takes the operator down in good order instead of leaving a deaf one behind."""
    world = server()
    api = world.api()
    reflector = Informer(api, InformerSource(CONFIGMAP, Meta), Store())
    elector = Elector(api, ("ns", "lock"), "one")
    controller = Controller("c", Replica.reconcile)  # type: ignore[arg-type]
    task = asyncio.create_task(run(Manager(api=api, reflectors=[reflector], controllers=[controller], elector=elector)))
    await eventually(lambda: elector.is_leader)
    reflector.listen(lambda _: 1 / 0)  # type: ignore[arg-type]
    world.world.seed(make(CONFIGMAP, "c"))
    assert await task == 1
    assert world.world.find(LEASE, "ns", "lock")["spec"]["holderIdentity"] == ""  # type: ignore[index]


async def test_sigterm_stops() -> None:
    """The signal that the kubelet sends is a stop."""
    one = Replica(server())
    await eventually(lambda: len(one.passes) == 2)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await one.task == 0
