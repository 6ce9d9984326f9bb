"""The verbs, against the fake server."""

import asyncio
from contextlib import aclosing

import httpx2
import pytest

from soperator.kube.api import Api, Deletion
from soperator.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Eof,
    Expired,
    Idle,
    Invalid,
    Malformed,
    NotFound,
    TooBusy,
    Unreachable,
)
from soperator.kube.kinds import CONFIGMAP, NODE, POD, SECRET
from soperator.kube.objects import ConfigMap
from soperator.kube.views import Meta, Pod
from soperator.kube.watch import Timing
from tests.unit.fake_api import FakeApi
from tests.unit.fake_world import Fault
from tests.unit.objects import make

pytestmark = pytest.mark.looptime


def pods(server: FakeApi, count: int) -> None:
    """Put Pods in."""
    for number in range(count):
        server.world.seed(make(POD, f"p{number}", labels={"odd": str(number % 2)}, spec={}))


async def test_a_list_reads_all_pages_and_selects_by_label() -> None:
    """Seven objects in pages of three come as one list, in three requests."""
    server = FakeApi()
    pods(server, 7)
    assert len((await server.api().list(POD, Pod, limit=3)).items) == 7
    assert server.asked() == ["list pods"] * 3
    assert len((await server.api().list(POD, Pod, "ns", "odd=1")).items) == 3
    assert (await server.api().list(POD, Pod, "other")).items == ()


async def test_a_page_that_expired_is_followed_by_a_full_read() -> None:
    """A continue token that the server forgot does not end the list."""
    server = FakeApi(latency=1.0)
    pods(server, 7)
    reading = asyncio.create_task(server.api().list(POD, Pod, limit=3))
    await asyncio.sleep(1.5)
    server.world.compact()
    assert len((await reading).items) == 7
    assert "limit" not in server.requests[-1].query


async def test_metadata_is_all_that_is_asked_for() -> None:
    """A list of Secrets by the view Meta never carries their data."""
    server = FakeApi()
    server.world.seed(make(SECRET, "key", data={"a": "c2VjcmV0"}))
    assert (await server.api().list(SECRET, Meta)).items[0].metadata.name == "key"
    assert server.requests[0].is_metadata


async def test_a_watch_begins_where_the_list_ended() -> None:
    """Changes after the list's version come in order, and closing the watch closes the stream."""
    server = FakeApi()
    pods(server, 1)
    api = server.api()
    since = (await api.list(POD, Pod)).version
    pods_later = make(POD, "later", spec={})
    server.world.seed(pods_later)
    server.world.remove(POD, "ns", "p0")
    async with aclosing(api.watch(POD, Pod, since)) as events:
        first, second = await anext(events), await anext(events)
    assert [(each.type, each.object.metadata.name) for each in (first, second) if each.object] == [
        ("ADDED", "later"),
        ("DELETED", "p0"),
    ]


async def watch_all(api: Api, since: str) -> list[str]:
    """Watch until the watch ends."""
    return [event.type async for event in api.watch(POD, Pod, since)]


async def test_how_a_watch_ends_is_told_apart() -> None:
    """Eof, silence, both shapes of 410, and a cut connection have an exception each."""
    server = FakeApi()
    api = server.api(Timing(idle=90.0, span=lambda: 5))
    with pytest.raises(Eof):
        await watch_all(api, "100")
    for server.world.expires_in_stream in (False, True):
        server.world.compact()
        with pytest.raises(Expired):
            await watch_all(api, "1")
    server.world.is_silent = True
    began = asyncio.get_running_loop().time()
    with pytest.raises(Idle):
        await watch_all(api, "9999")
    assert asyncio.get_running_loop().time() - began == pytest.approx(90)
    server.faults.append(Fault(verb="watch", status=0))
    with pytest.raises(Unreachable):
        await watch_all(api, "9999")


async def test_bookmarks_carry_a_version_only() -> None:
    """A bookmark moves the place to resume from, and has no object."""
    server = FakeApi(bookmark=30.0)
    async with aclosing(server.api().watch(POD, Pod, "100")) as events:
        event = await anext(events)
    assert (event.type, event.object, event.version) == ("BOOKMARK", None, "100")


async def test_errors_have_types() -> None:
    """404, 409 and 422 come as what they mean, with the fields that the server names."""
    server = FakeApi()
    api = server.api()
    with pytest.raises(NotFound):
        await api.get(CONFIGMAP, ConfigMap, "ns", "none")
    await api.create(CONFIGMAP, make(CONFIGMAP, "a"))
    with pytest.raises(AlreadyExists):
        await api.create(CONFIGMAP, make(CONFIGMAP, "a"))
    server.world.rules.append(lambda *_: "data.x: may not be")
    with pytest.raises(Invalid) as caught:
        await api.apply(CONFIGMAP, make(CONFIGMAP, "a", data={"x": "y"}))
    assert [(cause.field, cause.message) for cause in caught.value.causes] == [("data.x", "may not be")]


async def test_delete_is_idempotent_and_means_one_object() -> None:
    """Deleting what is gone, or what has another uid by now, is False and harmless."""
    server = FakeApi()
    api = server.api()
    uid = server.world.seed(make(CONFIGMAP, "a"))["metadata"]["uid"]
    assert not await api.delete(CONFIGMAP, "ns", "a", Deletion(uid="another"))
    assert await api.delete(CONFIGMAP, "ns", "a", Deletion(uid=uid, grace=0))
    assert not await api.delete(CONFIGMAP, "ns", "a")


async def test_apply_creates_and_updates() -> None:
    """The same request makes an object and changes it, and returns its new metadata."""
    server = FakeApi()
    api = server.api()
    first = await api.apply(NODE, make(NODE, "n", labels={"a": "1"}))
    second = await api.apply(NODE, make(NODE, "n", labels={"a": "2"}))
    assert first.metadata.uid == second.metadata.uid
    assert first.metadata.resource_version != second.metadata.resource_version
    assert (await api.get(NODE, Meta, None, "n")).metadata.labels == {"a": "2"}


async def test_throttling_is_waited_out_up_to_a_point() -> None:
    """429 is retried after the server's time, three times at most; a long wait goes to the caller."""
    server = FakeApi()
    api = server.api()
    server.world.seed(make(CONFIGMAP, "a"))
    server.faults.append(Fault(status=429, reason="TooManyRequests", retry_after=2.0, times=3))
    began = asyncio.get_running_loop().time()
    await api.get(CONFIGMAP, ConfigMap, "ns", "a")
    assert 6.0 <= asyncio.get_running_loop().time() - began < 7.0
    server.faults[:] = [Fault(status=429, reason="TooManyRequests", retry_after=120.0)]
    with pytest.raises(TooBusy) as caught:
        await api.get(CONFIGMAP, ConfigMap, "ns", "a")
    assert caught.value.retry_after == 120.0
    server.faults[:] = [Fault(status=503, reason="ServiceUnavailable")]
    with pytest.raises(TooBusy):
        await api.get(CONFIGMAP, ConfigMap, "ns", "a")


async def test_requests_are_counted_by_verb_kind_and_status() -> None:
    """Each request counts once, and one without an answer counts as 0."""
    server = FakeApi()
    api = server.api()
    await api.list(POD, Pod)
    with pytest.raises(ApiError):
        await api.get(CONFIGMAP, ConfigMap, "ns", "a")
    server.down = True
    with pytest.raises(Unreachable, match="list Pod /api/v1/pods: ConnectError"):
        await api.list(POD, Pod)
    assert api.requests == {("list", "Pod", 200): 1, ("get", "ConfigMap", 404): 1, ("list", "Pod", 0): 1}


async def test_a_stale_lease_is_not_overwritten() -> None:
    """PUT is a compare-and-swap."""
    server = FakeApi()
    api = server.api()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "a"}}
    meta = {"name": "l", "namespace": "ns"}
    server.world.seed({**lease, "metadata": meta})
    with pytest.raises(Conflict):
        await api.replace({**lease, "metadata": {**meta, "resourceVersion": "1"}})


async def test_an_answer_that_is_no_kubernetes_is_malformed() -> None:
    """A proxy's login page is an error with the request in it, not a crash."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>"))
    api = Api(httpx2.AsyncClient(transport=transport, base_url="http://fake"))
    with pytest.raises(Malformed, match="get ConfigMap /api/v1/namespaces/ns/configmaps/a"):
        await api.get(CONFIGMAP, ConfigMap, "ns", "a")


async def test_a_deletion_of_a_version_that_is_no_more_says_so() -> None:
    """Gone is what is not found; an object that has changed is there, and whoever decided looks again."""
    server = FakeApi()
    api = server.api()
    meta = (await api.create(CONFIGMAP, make(CONFIGMAP, "a", "ns"))).metadata
    server.world.change(CONFIGMAP, ("ns", "a"), {"data": {"new": "true"}})
    with pytest.raises(Conflict):
        await api.delete(CONFIGMAP, "ns", "a", Deletion(uid=meta.uid, version=meta.resource_version))
    live = (await api.get(CONFIGMAP, Meta, "ns", "a")).metadata
    assert await api.delete(CONFIGMAP, "ns", "a", Deletion(uid=live.uid, version=live.resource_version))
    assert not await api.delete(CONFIGMAP, "ns", "a", Deletion(uid=live.uid, version=live.resource_version))
