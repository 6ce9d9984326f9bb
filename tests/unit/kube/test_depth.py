"""Objects that are nested deeper than a program can read: one tenant's must not keep the operator from those of others."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from soperator.api.base import Problem
from soperator.kube.api import Api
from soperator.kube.depth import DEEPEST, shallow
from soperator.kube.kinds import NODESET
from soperator.kube.views import Custom
from soperator.reconcile.cache.decode import partial_nodeset, read_nodeset
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Store

#: As deep as a kube-apiserver takes it.
DEPTHS = [250, 1100, 5000, 9900]


def nested(depth: int, begin: str = "[", end: str = "]") -> str:
    """A value of so many levels."""
    return begin * depth + "1" + end * depth


def nodeset(name: str, inner: str, version: str = "5") -> str:
    """A NodeSet with a piece of JSON in a field that is handed through."""
    meta = json.dumps({"name": name, "namespace": "tenant", "uid": name, "resourceVersion": version})
    return (
        f'{{"metadata":{meta},"spec":{{"clusterRef":{{"name":"demo"}},"scheduling":{{"affinity":{{"a":{inner}}}}}}}}}'
    )


class _Server(httpx2.AsyncBaseTransport):
    """Answers each list with one text and each watch with another, byte by byte as they are."""

    def __init__(self, items: list[str], changed: list[str]) -> None:
        self.listed = f'{{"metadata":{{"resourceVersion":"5"}},"items":[{",".join(items)}]}}'
        self.lines = "".join(f'{{"type":"MODIFIED","object":{each}}}\n' for each in changed)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if b"watch=true" not in request.url.query:
            return httpx2.Response(200, content=self.listed.encode())
        return httpx2.Response(200, stream=_Lines(self.lines.encode()))


class _Lines(httpx2.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self.content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content
        await asyncio.sleep(3600)


async def kept(items: list[str], changed: list[str]) -> dict[str, Custom]:
    """What a cache holds after a list and a watch."""
    store: Store[Custom] = Store()
    api = Api(httpx2.AsyncClient(transport=_Server(items, changed), base_url="http://fake"))
    task = asyncio.ensure_future(Informer(api, InformerSource(NODESET, Custom), store).run())
    await asyncio.wait({task}, timeout=5)
    assert not task.done(), task.exception()
    task.cancel()
    return {each.metadata.name: each for each in store.all()}


@pytest.mark.looptime
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("marks", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
@pytest.mark.parametrize("is_watched", [False, True], ids=["listed", "watched"])
async def test_a_deep_object_of_one_leaves_those_of_others_readable(depth, marks, is_watched):
    """It is kept, as one that is refused: to the passes it has not vanished. Those before and after it are as they were."""
    deep = nodeset("deep", nested(depth, *marks))
    before = [nodeset("a", "1"), nodeset("deep", "1") if is_watched else deep, nodeset("z", '{"b":"["}')]
    found = await kept(before, [nodeset("deep", nested(depth, *marks), "6")] if is_watched else [])
    assert sorted(found) == ["a", "deep", "z"]
    assert bytes(found["z"].spec) == b'{"clusterRef":{"name":"demo"},"scheduling":{"affinity":{"a":{"b":"["}}}}'
    refused = read_nodeset(found["deep"])
    assert isinstance(refused, list)
    assert str(refused[0]) == "NodeSet deep: spec: it is nested too deeply to be read: remove unneeded levels"
    partial = partial_nodeset(found["deep"])
    assert partial is not None
    assert partial.spec.cluster == "demo"


def test_what_is_not_deep_is_left_alone():
    """However many lists there are, and whatever brackets stand in texts."""
    wide = ("[" + ",".join(['{"a":["]]}}\\"[{"]}'] * 2000) + "]").encode()
    assert shallow(wide) is wide


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1, DEEPEST + 500])
def test_what_is_cut_is_still_json(depth):
    """Values beside what is cut stay."""
    text = f'{{"before":"]\\"","deep":{nested(depth)},"after":[{nested(depth)},2]}}'.encode()
    cut = json.loads(shallow(text))
    assert (cut["before"], cut["after"][1]) == (']"', 2)
    assert (shallow(text) == text) == (depth < DEEPEST - 1)


def test_a_problem_of_another_kind_keeps_its_words():
    """Only what is no JSON to us is called too deep."""
    [said] = read_nodeset(Custom(spec=b'{"clusterRef":{"name":"demo"},"replicas":"many"}'))  # type: ignore[arg-type, misc]
    assert isinstance(said, Problem)
    assert said.field == "spec.replicas"
