"""What answers as slurmrestd is read within bounds of bytes and of time, whatever it says: it runs in a container of the cluster's owner."""

import asyncio
import contextlib
import gzip
import os
import resource
import time

import httpx2
import pytest

from soperator.slurmrest import client as rest
from soperator.slurmrest.bounded import MIB, Bound
from soperator.slurmrest.client import SlurmError, SlurmRest
from tests.unit.slurmrest.talker import HEAD, drips, for_ever, never, talker

TALKS = {
    "for ever one text": for_ever(HEAD + b'{"errors": [{"description": "', b"x" * 65536),
    "for ever a record": for_ever(HEAD + b'{"nodes": [{"name": "w-0", "reason": "', b"x" * 65536),
    "for ever records": for_ever(HEAD + b'{"nodes": [{"name": "w"}', b', {"name": "w"}' * 4096),
    "for ever an error": for_ever(HEAD.replace(b"200", b"500"), b"x" * 65536),
    "for ever a head": for_ever(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "for ever heads": for_ever(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.01),
    "for ever go on": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "never": never,
    "a byte now and then": drips(HEAD + b'{"nodes": [' + b" " * 1000),
}
CALLS = {
    "fetch_nodes": lambda client: client.fetch_nodes(),
    "has_changed": lambda client: client.has_changed(7),
    "run": lambda client: client.run(7),
    "jobs": lambda client: client.jobs(),
}


@pytest.fixture
def impatient(monkeypatch):
    """Bounds that a test can wait for: no more bytes, and a third of a second."""
    for name in ("_ONE", "_NODES", "JOBS"):
        bound = getattr(rest, name)
        monkeypatch.setattr(rest, name, Bound(min(bound.most, 64 * MIB), 0.3, 0.2))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS.keys())
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_no_answer_costs_more_than_its_bounds(call, talk):
    """Whatever is said and however slowly, a call ends in time, and the operator's memory does not grow by what was said."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with talker(talk) as address:
        client = SlurmRest(address, b"key")
        began = time.monotonic()
        with contextlib.suppress(SlurmError):
            assert await call(client) is True, "only whether something changed has an answer without a body"
        took = time.monotonic() - began
        await client.close()
    assert took < 5.0
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 160


class Packed(httpx2.AsyncBaseTransport):
    """An answer that was compressed though nobody asked for that."""

    async def handle_async_request(self, _request):
        return httpx2.Response(
            200, headers={"content-encoding": "gzip"}, stream=httpx2.ByteStream(gzip.compress(b"{}"))
        )


@pytest.mark.parametrize("call", [CALLS["fetch_nodes"], CALLS["run"], CALLS["jobs"]])
async def test_an_answer_that_would_grow_is_not_unpacked(call):
    """A few kilobytes of zeros become gigabytes."""
    with pytest.raises(SlurmError, match="compressed"):
        await call(SlurmRest("http://rest", b"key", Packed()))


async def test_no_proxy_of_the_environment_gets_the_token(monkeypatch):
    """The token makes its bearer root in Slurm for ten minutes."""
    heard = []

    async def talk(writer):
        heard.append(writer)

    async with talker(talk) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setitem(os.environ, name, proxy)
        client = SlurmRest("http://127.0.0.1:9", b"key")
        with pytest.raises(SlurmError):
            await client.nodes()
        await client.close()
    await asyncio.sleep(0)
    assert heard == []


async def test_a_short_list_of_nodes_that_stands_for_many_is_bounded():
    """Four kilobytes say that sixty jobs hold all of 65,536 nodes each: each name would be one in memory."""
    jobs = [{"job_id": number, "job_state": ["RUNNING"], "nodes": "n[0-65535]"} for number in range(60)]
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, json={"jobs": jobs}))
    client = SlurmRest("http://rest", b"key", answers)
    with pytest.raises(SlurmError, match="jobs hold more than 1048576 nodes together"):
        await client.jobs()
    await client.close()


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("call", [each for name, each in CALLS.items() if name != "has_changed"])
async def test_an_answer_that_is_nested_too_deep_is_no_answer(call, status):
    """Reading it ends with a RecursionError, for which no pass waits."""
    deep = "[" * 100_000 + "]" * 100_000
    body = f'{{"nodes": [{{"name": "a", "x": {deep}}}], "jobs": [{{"job_id": 1, "x": {deep}}}], "errors": {deep}}}'
    client = SlurmRest("http://rest", b"key", httpx2.MockTransport(lambda _: httpx2.Response(status, text=body)))
    with pytest.raises(SlurmError):
        await call(client)
    await client.close()
