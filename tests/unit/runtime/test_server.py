"""The operator's HTTP port."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from soperator.observe import operator as names
from soperator.runtime.connections import ConnectionRates, bounded
from soperator.runtime.metrics import OperatorMetrics, QueueState, Sources
from soperator.runtime.server import build_app, serve

#: Those of them that tell of volumes.
VOLUMES = (names.VOLUME_SIZE, names.VOLUME_AVAILABLE, names.VOLUME_FILES, names.VOLUME_LOOK)
#: And of backups.
BACKUPS = (names.BACKUP_READY, names.BACKUP_TIME)


async def ask(path: str, metrics: OperatorMetrics, **checks: bool) -> httpx2.Response:
    """Ask the application, in process."""
    app = build_app(metrics.registry, lambda: checks)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://operator") as client:
        return await client.get(path)


async def test_readiness_names_what_is_missing() -> None:
    """/readyz is 503 until every cache is whole, and says which is not."""
    waiting = await ask("/readyz", OperatorMetrics(), pods=True, nodes=False)
    assert (waiting.status_code, waiting.text) == (503, "waiting for nodes\n")
    assert (await ask("/readyz", OperatorMetrics(), pods=True, nodes=True)).status_code == 200


async def test_liveness_needs_no_cache() -> None:
    """/healthz answers as long as the loop runs."""
    assert (await ask("/healthz", OperatorMetrics(), pods=False)).status_code == 200


async def test_metrics_show_counts_as_they_are_when_scraped() -> None:
    """Requests, stores, queues and leadership are read from where they are kept."""
    requests: Counter[tuple[str, str, int]] = Counter({("patch", "Pod", 200): 3})
    metrics = OperatorMetrics()
    metrics.read_from(
        Sources(
            requests=lambda: requests,
            stores=lambda: {"pods": 7},
            relists=lambda: {"pods": 1},
            ages=lambda: {"pods": 12.5},
            synced=lambda: {"pods": True},
            queues=lambda: {"cluster": QueueState(2, 1, 5, 3)},
            is_leader=lambda: True,
        )
    )
    text = (await ask("/metrics", metrics)).text
    for line in (
        'soperator_api_requests_total{code="200",kind="Pod",verb="patch"} 3.0',
        'soperator_store_objects{kind="pods"} 7.0',
        'soperator_relists_total{kind="pods"} 1.0',
        'soperator_store_age_seconds{kind="pods"} 12.5',
        'soperator_queue_depth{controller="cluster"} 2.0',
        'soperator_queue_active{controller="cluster"} 1.0',
        'soperator_queue_waiting{controller="cluster"} 5.0',
        'soperator_queue_failing{controller="cluster"} 3.0',
        'soperator_store_synced{kind="pods"} 1.0',
        "soperator_leader 1.0",
    ):
        assert line in text.splitlines()
    requests["patch", "Pod", 200] += 1
    assert 'verb="patch"} 4.0' in (await ask("/metrics", metrics)).text


async def test_every_metric_of_the_registry_is_exported() -> None:
    """What alerts and documents name is there; those that the clusters' caches give come with `export`."""
    metrics = OperatorMetrics()
    metrics.read_from(Sources())
    metrics.export(lambda: [(each, []) for each in (names.INFO, names.CONDITION, names.ANSWERING, *VOLUMES, *BACKUPS)])
    text = (await ask("/metrics", metrics)).text
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {each.name for each in names.METRICS} <= told
    assert {name for name in told if name.startswith("soperator_")} <= {each.name for each in names.METRICS} | {
        "soperator_pass_seconds_created"
    }


@asynccontextmanager
async def served(app: Starlette, places: int, patience: float, life: float = 60.0) -> AsyncIterator[int]:
    """Serve an application on a free port, with these bounds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    task = asyncio.create_task(serve(app, "127.0.0.1", port, bounded(places, patience, life)))
    while True:
        with suppress(OSError):
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
            break
        await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def closed(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Whether the server ends the connection within that time."""
    try:
        return await asyncio.wait_for(reader.read(), seconds) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


async def test_a_client_that_never_asks_goes_and_the_oldest_goes_first() -> None:
    """There are so many places; each newcomer is answered, and those that were there before it and say nothing are ended."""
    async with served(build_app(OperatorMetrics().registry, dict), 8, 30.0) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for _ in range(20):
            async with httpx2.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"http://127.0.0.1:{port}/healthz", timeout=2)).status_code == 200
            idle.append(await asyncio.open_connection("127.0.0.1", port))
        assert all([await closed(reader, 2) for reader, _ in idle[:40]])
        assert not await closed(idle[-1][0], 0.1)
        for _, writer in idle:
            writer.close()


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
async def test_a_client_has_so_many_seconds_to_ask(said: bytes) -> None:
    """One that says nothing, and one that says half of it."""
    async with served(build_app(OperatorMetrics().registry, dict), 8, 0.2) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        assert await closed(reader, 2)
        writer.close()


async def test_a_client_that_does_not_read_goes_after_a_while_and_one_that_does_is_let_be() -> None:
    """An answer under way is no reason to stay for ever; nor does it end before the time is up where others only connect."""

    async def slow(_: object) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(6):
                yield b"x"
                await asyncio.sleep(0.1)

        return StreamingResponse(pieces())

    async with served(Starlette(routes=[Route("/", slow)]), 4, 0.2, 2.0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await asyncio.sleep(0.05)
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
        assert (await reader.read()).count(b"\r\nx\r\n") == 6
        again, asking = await asyncio.open_connection("127.0.0.1", port)
        asking.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        began = asyncio.get_running_loop().time()
        with suppress(ConnectionResetError):
            await asyncio.wait_for(again.read(), 5)
        assert asyncio.get_running_loop().time() - began < 3
        for each in (writer, asking, *(other for _, other in idle)):
            each.close()


async def test_who_asks_without_a_pause_does_not_keep_the_loop() -> None:
    """A pod of anybody asks for metrics over two hundred connections; what the operator does beside it goes on, and others are answered."""
    async with served(build_app(OperatorMetrics().registry, dict), 256, 5.0) as port:
        end = asyncio.get_running_loop().time() + 2.0

        async def ask_on() -> int:
            answers = 0
            while asyncio.get_running_loop().time() < end:
                with suppress(OSError, asyncio.IncompleteReadError):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    while not writer.is_closing():
                        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
                        await reader.readuntil(b"\r\n\r\n")
                        answers += 1
                        await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(0.02)
            return answers

        asking = [asyncio.create_task(ask_on()) for _ in range(100)]
        await asyncio.sleep(0.5)
        address = ("127.0.0.2", 0)  # the kubelet's
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 2)).endswith(b"ok\n")
        writer.close()
        assert sum(await asyncio.gather(*asking)) < 200


def test_an_address_has_turns_of_its_own_and_they_come_back() -> None:
    """So many at once, and then so many a second; what is known of addresses has a bound."""
    turns = ConnectionRates(rate=2.0, burst=3.0)
    assert [turns.take("a", 0.0) for _ in range(5)] == [True] * 3 + [False] * 2
    assert turns.take("b", 0.0)
    assert [turns.take("a", 1.0) for _ in range(3)] == [True, True, False]
    assert [turns.take("a", 100.0) for _ in range(4)] == [True] * 3 + [False]
    for number in range(5000):
        turns.take(str(number), 200.0)
    assert len(turns._left) <= 1024
