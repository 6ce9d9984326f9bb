"""The reflector against a real API server: every failure that the virtual tests fake."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from soperator.kube.api import Api
from soperator.kube.errors import Expired
from soperator.kube.kinds import CONFIGMAP, Kind
from soperator.kube.views import Meta
from soperator.kube.watch import Event, Timing
from soperator.runtime.cache.informer import Informer, InformerPace, InformerSource
from soperator.runtime.cache.store import Changed, Store
from tests.runtime.relay import Relay
from tests.runtime.server import ControlPlane
from tests.unit.fake_api import eventually
from tests.unit.objects import make


@dataclass
class Follower:
    """A reflector, and the names that it has told of."""

    reflector: Informer[Meta]
    told: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the names in the store."""
        return [each.metadata.name for each in self.reflector.store.all()]

    async def has(self, *names: str, seconds: float = 20.0) -> None:
        """Return once the store holds exactly these."""
        try:
            await eventually(lambda: self.names() == sorted(names), seconds)
        except TimeoutError:
            raise AssertionError(f"the store has {self.names()}, not {sorted(names)}") from None


@asynccontextmanager
async def follow(api: Api, namespace: str, kind: Kind = CONFIGMAP) -> AsyncIterator[Follower]:
    """Yield a running reflector that is synced."""
    reflector = Informer(
        api, InformerSource(kind, Meta, namespace), Store(), InformerPace(connect=0.2, first=0.2, longest=1.0)
    )
    follower = Follower(reflector)

    def note(change: Changed[Meta]) -> None:
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        follower.told += [sign + each.metadata.name for each in (change.new or change.old,) if each is not None]

    reflector.listen(note)
    task = asyncio.create_task(reflector.run())
    try:
        await eventually(lambda: reflector.store.is_synced, 20)
        await asyncio.sleep(0.3)
        yield follower
    finally:
        task.cancel()
        await asyncio.wait({task})
        await api.aclose()


async def create(api: Api, namespace: str, *names: str) -> None:
    """Create ConfigMaps."""
    for name in names:
        await api.create(CONFIGMAP, make(CONFIGMAP, name, namespace, data={"a": "1"}))


async def test_lists_have_pages_and_watches_follow(plane: ControlPlane, api: Api, namespace: str) -> None:
    """Pages add up, changes arrive, metadata is all that is sent."""
    await create(api, namespace, *"abcde")
    assert len((await api.list(CONFIGMAP, Meta, namespace, limit=2)).items) == 5
    async with follow(plane.api(), namespace) as it:
        await create(api, namespace, "f")
        await api.apply(CONFIGMAP, make(CONFIGMAP, "a", namespace, data={"a": "2"}))
        await api.delete(CONFIGMAP, namespace, "b")
        await it.has(*"acdef")
        assert it.told[5:] == ["+f", "~a", "-b"]
        assert it.reflector.store.all()[0].metadata.managed_fields


async def test_after_410_the_gap_is_found_by_a_relist(plane: ControlPlane, api: Api, namespace: str) -> None:
    """What was deleted, made and changed before a compaction, while no watch ran, is told once each."""
    await create(api, namespace, "gone", "stays", "changes")
    async with Relay(plane.port) as relay, follow(plane.api(relay.port), namespace) as it:
        relay.refuse()
        await api.delete(CONFIGMAP, namespace, "gone")
        await create(api, namespace, "new")
        await api.apply(CONFIGMAP, make(CONFIGMAP, "changes", namespace, data={"a": "2"}))
        plane.compact()
        it.told.clear()
        relay.open()
        await it.has("stays", "changes", "new")
        assert sorted(it.told) == ["+new", "-gone", "~changes"]
        assert it.reflector.relists == 2


async def test_both_shapes_of_410_come_as_expired(plane: ControlPlane, api: Api, namespace: str) -> None:
    """A watch from a compacted version ends by an ERROR event, a continue token of one by HTTP status 410."""
    await create(api, namespace, *"abc")
    page = await api.transport.client.get(CONFIGMAP.path(namespace), params={"limit": "1"})
    meta = page.json()["metadata"]
    await create(api, namespace, "d", "e")
    plane.compact()
    with pytest.raises(Expired):
        await _drain(api.watch(CONFIGMAP, Meta, meta["resourceVersion"], namespace))
    assert api.requests["watch", "ConfigMap", 200] == 1
    with pytest.raises(Expired):
        await api._pages(CONFIGMAP, Meta, CONFIGMAP.path(namespace), {"limit": "1", "continue": meta["continue"]})
    assert api.requests["list", "ConfigMap", 410] == 1


async def test_eof_resumes_without_a_list(plane: ControlPlane, api: Api, namespace: str) -> None:
    """Watches that the server ends after a second are taken up again and again, and lose nothing."""
    async with follow(plane.api(timing=Timing(span=lambda: 1)), namespace) as it:
        for name in "abcdef":
            await create(api, namespace, name)
            await asyncio.sleep(0.4)
        await it.has(*"abcdef")
        assert it.told == [f"+{name}" for name in "abcdef"]
        assert it.reflector.relists == 1


async def test_a_silent_connection_is_dropped(plane: ControlPlane, api: Api, namespace: str) -> None:
    """A connection that stays open and says nothing is replaced, and what it swallowed arrives."""
    await create(api, namespace, "a")
    timing = Timing(idle=1.5)
    async with Relay(plane.port) as relay, follow(plane.api(relay.port, timing), namespace) as it:
        relay.freeze()
        await api.delete(CONFIGMAP, namespace, "a")
        await create(api, namespace, "b")
        await asyncio.sleep(0.5)
        assert it.names() == ["a"]
        await it.has("b", seconds=5)
        assert it.reflector.relists == 1


async def test_429_of_priority_and_fairness_is_waited_out(plane: ControlPlane, api: Api, namespace: str) -> None:
    """Requests over a priority level's seats get 429 with Retry-After, and every one of them succeeds in the end."""
    flow = "flowcontrol.apiserver.k8s.io/v1"
    level = {
        "apiVersion": flow,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "no-seats"},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            },
        },
    }
    subject = {"kind": "User", "user": {"name": "guest"}}
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": True}
    schema = {
        "apiVersion": flow,
        "kind": "FlowSchema",
        "metadata": {"name": "guests"},
        "spec": {
            "priorityLevelConfiguration": {"name": "no-seats"},
            "matchingPrecedence": 10,
            "rules": [{"subjects": [subject], "resourceRules": [rule]}],
        },
    }
    path = "/apis/flowcontrol.apiserver.k8s.io/v1"
    raw = api.transport.client
    async with plane.api(token="guest-token") as guest:
        assert (await raw.post(f"{path}/prioritylevelconfigurations", json=level)).status_code == 201
        assert (await raw.post(f"{path}/flowschemas", json=schema)).status_code == 201
        async with asyncio.timeout(30):
            while not guest.requests["list", "ConfigMap", 429]:
                await asyncio.gather(*(guest.list(CONFIGMAP, Meta, namespace) for _ in range(6)))
    await raw.delete(f"{path}/flowschemas/guests")


async def _drain(events: AsyncGenerator[Event[Meta], None]) -> None:
    async with aclosing(events):
        async for _ in events:
            pass
