"""The reflector against every way in which a list or a watch can fail, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from soperator.kube.kinds import CONFIGMAP, POD
from soperator.kube.views import Meta, Pod
from soperator.runtime.cache.informer import OUTDATED, Informer, InformerPace, InformerSource
from soperator.runtime.cache.store import Changed, Store, key_of
from soperator.runtime.workqueue import Queue
from tests.unit.fake_api import FakeApi, eventually
from tests.unit.fake_world import Fault
from tests.unit.objects import make

pytestmark = pytest.mark.looptime


@dataclass
class Lab:
    """A reflector on a fake server, and what it told."""

    server: FakeApi = field(default_factory=FakeApi)
    store: Store[Pod] = field(default_factory=Store)
    told: list[str] = field(default_factory=list)
    reflector: Informer[Pod] = field(init=False)

    def __post_init__(self) -> None:
        self.reflector = Informer(
            self.server.api(), InformerSource(POD, Pod), self.store, InformerPace(random=lambda: 1.0)
        )
        self.reflector.listen(self._tell)

    def _tell(self, change: Changed[Pod]) -> None:
        obj = change.new or change.old
        assert obj is not None
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        self.told.append(f"{sign}{obj.metadata.name}")

    def names(self) -> list[str]:
        """Return the names in the store."""
        return [each.metadata.name for each in self.store.all()]

    def pod(self, name: str) -> None:
        """Make a Pod appear."""
        self.server.world.seed(make(POD, name, spec={}))

    def drop(self, name: str) -> None:
        """Make a Pod vanish."""
        self.server.world.remove(POD, "ns", name)

    def asked(self, verb: str) -> int:
        """Return how many requests there were."""
        return len(self.server.asked(verb))


@asynccontextmanager
async def running() -> AsyncIterator[Lab]:
    """Yield a running reflector that has seen Pods a and b."""
    lab = Lab()
    lab.pod("a")
    lab.pod("b")
    task = asyncio.create_task(lab.reflector.run())
    await eventually(lambda: lab.store.is_synced and lab.asked("watch") == 1)
    try:
        yield lab
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_changes_arrive_by_watch() -> None:
    """After one list, everything comes by the watch."""
    async with running() as lab:
        lab.pod("c")
        lab.server.world.change(POD, ("ns", "a"), {"metadata": {"labels": {"x": "y"}}})
        lab.drop("b")
        await eventually(lambda: lab.names() == ["a", "c"])
        assert lab.told == ["+a", "+b", "+c", "~a", "-b"]
        assert lab.asked("list") == 1


@pytest.mark.parametrize("in_stream", [False, True], ids=["as HTTP status", "as ERROR event"])
async def test_after_410_the_gap_is_found_by_a_relist(in_stream: bool) -> None:
    """A deletion, a change and a creation that no watch saw are each told once."""
    async with running() as lab:
        world = lab.server.world
        world.expires_in_stream = in_stream
        lab.server.down = True
        world.cut()
        await asyncio.sleep(3)
        lab.drop("a")
        lab.pod("c")
        world.change(POD, ("ns", "b"), {"spec": {"nodeName": "n1"}})
        world.compact()
        lab.told.clear()
        lab.server.down = False
        await eventually(lambda: lab.names() == ["b", "c"], 60)
        assert sorted(lab.told) == ["+c", "-a", "~b"]
        assert lab.asked("list") == 2


async def test_eof_resumes_without_a_list() -> None:
    """A watch that ends is taken up where it ended, and nothing in between is lost."""
    async with running() as lab:
        lab.server.world.cut()
        lab.pod("c")
        await eventually(lambda: lab.names() == ["a", "b", "c"])
        assert lab.asked("list") == 1


async def test_a_server_that_always_hangs_up_is_asked_once_a_second() -> None:
    """Watches that end at once do not become a loop."""
    async with running() as lab:
        before = lab.asked("watch")
        for _ in range(200):
            lab.server.world.cut()
            await asyncio.sleep(0.05)
        assert lab.asked("watch") - before <= 11


async def test_a_silent_watch_is_dropped_after_90_seconds() -> None:
    """A connection that says nothing, not even a bookmark, is replaced, and what it missed arrives."""
    async with running() as lab:
        lab.server.world.is_silent = True
        lab.server.world.change(POD, ("ns", "a"), {"spec": {"nodeName": "n1"}})
        await asyncio.sleep(10)
        lab.drop("b")
        lab.server.world.is_silent = False
        await asyncio.sleep(75)
        assert lab.names() == ["a", "b"]
        await eventually(lambda: lab.names() == ["a"], 20)
        assert lab.asked("list") == 1


async def test_a_watch_that_never_hears_anything_is_opened_again_ever_more_seldom() -> None:
    """After 90 s, then after 240 s each, and its cache never counts as out of date; after an event it is 90 s again."""
    async with running() as lab:
        lab.server.world.is_silent = True
        await asyncio.sleep(2)
        opened, ages = [lab.asked("watch")], []
        for _ in range(60):
            await asyncio.sleep(10)
            opened.append(lab.asked("watch"))
            ages.append(lab.reflector.age)
        assert opened[-1] == 4
        assert max(ages) < OUTDATED
        lab.server.world.is_silent = False
        lab.pod("c")
        await eventually(lambda: "c" in lab.names(), 300)
        before = lab.asked("watch")
        lab.server.world.is_silent = True
        await asyncio.sleep(100)
        assert lab.asked("watch") == before + 1


async def test_bookmarks_keep_a_quiet_watch_alive_and_its_version_fresh() -> None:
    """A watch on which nothing happens lives for its whole span, and resumes from a bookmark after it."""
    async with running() as lab:
        for _ in range(5):
            lab.server.world.seed(make(CONFIGMAP, f"other-{_}"))
        await asyncio.sleep(230)
        assert lab.asked("watch") == 1
        lab.server.world.compact()
        lab.server.world.cut()
        await asyncio.sleep(5)
        assert lab.asked("list") == 2


async def test_errors_back_off_and_keep_the_place() -> None:
    """A server that fails is asked ever less often, and the watch resumes without a list."""
    async with running() as lab:
        lab.server.faults.append(Fault(verb="watch", status=500, times=4))
        lab.server.world.cut()
        lab.pod("c")
        await asyncio.sleep(0.5 + 1 + 2 + 3)
        assert lab.names() == ["a", "b"]
        await eventually(lambda: "c" in lab.names(), 20)
        assert lab.asked("list") == 1


async def test_a_version_that_is_refused_again_and_again_ends_in_a_relist() -> None:
    """A version that the server cannot serve, but does not call expired, is given up."""
    async with running() as lab:
        lab.server.faults.append(Fault(verb="watch", status=504, times=5))
        lab.server.world.cut()
        await eventually(lambda: lab.asked("list") == 2, 60)


async def test_an_outage_does_not_cost_a_list() -> None:
    """However long the server is away, the watch resumes if its version is still served."""
    async with running() as lab:
        lab.server.down = True
        lab.server.world.cut()
        await asyncio.sleep(300)
        lab.pod("c")
        lab.server.down = False
        await eventually(lambda: "c" in lab.names(), 20)
        assert lab.asked("list") == 1


async def test_429_waits_as_long_as_the_server_asks() -> None:
    """Retry-After is honoured before the next attempt."""
    async with running() as lab:
        lab.server.faults.append(Fault(verb="watch", status=429, reason="TooManyRequests", retry_after=40.0))
        lab.server.world.cut()
        lab.pod("c")
        await asyncio.sleep(40)
        assert "c" not in lab.names()
        await eventually(lambda: "c" in lab.names(), 5)


async def test_the_first_list_is_tried_until_it_works() -> None:
    """A reflector that starts before its server is ready becomes synced by itself."""
    lab = Lab()
    lab.server.faults.append(Fault(verb="list", status=403, reason="Forbidden", times=3))
    lab.pod("a")
    task = asyncio.create_task(lab.reflector.run())
    await asyncio.sleep(1)
    assert not lab.store.is_synced
    await eventually(lambda: lab.store.is_synced, 30)
    task.cancel()
    await asyncio.wait({task})


async def test_both_the_old_and_the_new_owner_are_told() -> None:
    """An object that changes hands wakes the keys of both hands."""
    server = FakeApi()
    queue = Queue()
    reflector = Informer(server.api(), InformerSource(CONFIGMAP, Meta), Store())
    reflector.feed(queue, lambda each: [("ns", each.metadata.labels["of"])])
    server.world.seed(make(CONFIGMAP, "a", labels={"of": "one"}))
    task = asyncio.create_task(reflector.run())
    assert await queue.get() == ("ns", "one")
    queue.done(("ns", "one"))
    server.world.change(CONFIGMAP, ("ns", "a"), {"metadata": {"labels": {"of": "two"}}})
    async with asyncio.timeout(5):
        assert {await queue.get(), await queue.get()} == {("ns", "one"), ("ns", "two")}
    assert [key_of(each) for each in reflector.store.all()] == [("ns", "a")]
    task.cancel()
    await asyncio.wait({task})


async def test_a_kind_that_is_not_installed_is_an_empty_one_until_it_is() -> None:
    """Three answers that there is none in a row: the cache is whole, listeners hear of what is gone, and the objects come with the kind."""
    server, told = FakeApi(), list[Changed[Pod]]()
    store: Store[Pod] = Store()
    source = InformerSource(POD, Pod, missing="install it")
    reflector = Informer(server.api(), source, store, InformerPace(random=lambda: 1.0))
    reflector.listen(told.append)
    server.world.seed(make(POD, "a", spec={}))
    server.faults.append(Fault("list", "pods", 404, "NotFound", times=4))
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(0.4)
    assert not store.is_synced
    await eventually(lambda: store.is_synced)
    assert len(store) == 0
    await eventually(lambda: len(store) == 1, 60)
    assert [change.new is not None for change in told] == [True]
    task.cancel()
    await asyncio.wait({task})


async def test_a_kind_that_has_to_be_there_is_waited_for() -> None:
    """To an incomplete cache all that is missing looks deleted."""
    server = FakeApi()
    store: Store[Pod] = Store()
    server.faults.append(Fault("list", "pods", 404, "NotFound", times=100))
    task = asyncio.create_task(
        Informer(server.api(), InformerSource(POD, Pod), store, InformerPace(random=lambda: 1.0)).run()
    )
    await asyncio.sleep(120)
    assert not store.is_synced
    task.cancel()
    await asyncio.wait({task})


async def test_the_age_of_a_cache_is_how_long_the_server_has_said_nothing() -> None:
    """Events, bookmarks and a watch that begins make it young; a server that refuses every watch lets it grow."""
    async with running() as it:
        it.server.bookmark = 60.0
        await asyncio.sleep(600)
        assert it.reflector.age <= 60.0
        it.server.world.is_silent = True
        it.server.world.cut()
        await asyncio.sleep(600)
        assert it.reflector.age <= 180.0
        it.server.faults.append(Fault("watch", "pods", 403, "Forbidden", "no", times=10**6))
        it.server.faults.append(Fault("list", "pods", 403, "Forbidden", "no", times=10**6))
        await asyncio.sleep(600)
        assert it.reflector.age > 400.0
