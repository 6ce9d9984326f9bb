"""Reading again and again: what is served while slurmrestd answers, while it does not, and after it was silent for long."""

import asyncio
import gzip
from pathlib import Path

import httpx2
import pytest

from soperator.agents.exporter.__main__ import credentials
from soperator.agents.exporter.refresh import PERIODS, STALE, Refresher, RefreshOptions
from soperator.agents.exporter.server import build_app
from soperator.slurmrest.reader import ListReader, RestAnswer

ANSWERS = Path(__file__).parent / "answers"


class Slurm(httpx2.AsyncBaseTransport):
    """slurmrestd with the recorded answers, as long as it is well."""

    def __init__(self):
        self.is_well, self.asked = True, []

    async def handle_async_request(self, request):
        what = request.url.path.rstrip("/").rpartition("/")[2]
        if what == "ping":
            return httpx2.Response(200, content=b"{}")
        assert request.headers["accept"] == "application/json"  # else 24.11 does not write compactly
        self.asked.append(what)
        if not self.is_well:
            raise httpx2.ConnectError("connection refused")
        return httpx2.Response(200, content=(ANSWERS / f"{what}.json").read_bytes())


class Exporter:
    """A refresher over a slurmrestd, at a time of day that a test sets."""

    def __init__(self):
        self.slurm, self.now = Slurm(), 1795329300.0
        reader = ListReader("http://rest", lambda: ("slurmrest", "token"), self.slurm)
        self.refresher = Refresher(reader, RefreshOptions("demo", 1500.0), wall=lambda: self.now)

    async def round(self):
        for source in self.refresher.sources.values():
            await self.refresher.once(source)

    @property
    def said(self):
        return self.refresher.metrics().decode()


async def test_before_the_first_answer_it_says_that_nothing_is_up():
    """There is something to scrape, and to alert on, from the first moment."""
    exporter = Exporter()
    assert 'slurm_up{slurm_cluster="demo",source="nodes"} 0' in exporter.said
    assert "slurm_nodes{" not in exporter.said


async def test_what_was_read_is_served():
    """Every source has its part."""
    exporter = Exporter()
    await exporter.round()
    for part in ('slurm_nodes{slurm_cluster="demo",state="mixed"} 1', 'slurm_jobs{slurm_cluster="demo",state="running"} 1',
                 "slurm_scheduler_cycles_total", "slurm_partition_up", "slurm_reservation_nodes", 'version="24.11.5"'):  # fmt: skip
        assert part in exporter.said
    assert sorted(exporter.slurm.asked) == sorted(PERIODS)


async def test_a_silence_is_told_at_once_and_what_was_read_stays_a_while():
    """Then it is dropped: nothing is told of what was once."""
    exporter = Exporter()
    await exporter.round()
    exporter.slurm.is_well = False
    await exporter.round()
    assert 'slurm_up{slurm_cluster="demo",source="jobs"} 0' in exporter.said
    assert 'slurm_refresh_failures_total{slurm_cluster="demo",source="jobs"} 1' in exporter.said
    assert "slurm_nodes{" in exporter.said
    exporter.now += STALE + 1
    assert "slurm_nodes{" not in exporter.said
    exporter.slurm.is_well = True
    await exporter.round()
    assert 'slurm_up{slurm_cluster="demo",source="jobs"} 1' in exporter.said


async def test_a_missing_token_is_a_failure_like_any_other(tmp_path):
    """The other container has not made it yet."""
    exporter = Exporter()
    reader = ListReader("http://rest", credentials("slurmrest", tmp_path / "token"), exporter.slurm)
    refresher = Refresher(reader, RefreshOptions("demo", 1500.0))
    await refresher.once(refresher.sources["nodes"])
    assert "the token for slurmrestd cannot be read" in refresher.sources["nodes"].trouble


async def test_a_scrape_asks_nobody():
    """However many scrape, slurmrestd does not notice; who takes gzip gets it, with the same content."""
    exporter = Exporter()
    await exporter.round()
    asked = len(exporter.slurm.asked)
    app = build_app(exporter.refresher.metrics, lambda: "page")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://exporter") as client:
        plain = await client.get("/metrics", headers={"Accept-Encoding": "identity"})
        async with client.stream("GET", "/metrics", headers={"Accept-Encoding": "gzip"}) as packed:
            raw = b"".join([each async for each in packed.aiter_raw()])
        health = await client.get("/healthz")
    assert plain.text.startswith(exporter.said)
    assert "process_resident_memory_bytes" in plain.text
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).decode().startswith(exporter.said)
    assert int(packed.headers["content-length"]) == len(raw) < len(plain.content)
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert health.status_code == 200
    assert len(exporter.slurm.asked) == asked


async def test_a_storm_of_scrapes_shares_one_text():
    """It is written once for each reading, and anew when a source has answered, or fallen silent, or grown old."""
    exporter = Exporter()
    await exporter.round()
    first = exporter.refresher.metrics()
    assert exporter.refresher.metrics() is first
    exporter.slurm.is_well = False
    await exporter.refresher.once(exporter.refresher.sources["jobs"])
    second = exporter.refresher.metrics()
    assert second is not first
    exporter.now += STALE + 1
    assert len(exporter.refresher.metrics()) < len(second)


class Slow:
    """slurmrestd whose answers about jobs take long; `asked` is what was asked when, `at_once` how many requests there were at most."""

    def __init__(self, jobs):
        self.jobs, self.asked, self.open, self.at_once = jobs, [], 0, 0

    async def records(self, what, _type, _take, _since=0):
        await self.answer(what)
        return RestAnswer(0)

    async def one(self, what, _name, type_):
        await self.answer(what)
        return type_()

    async def answer(self, what):
        self.asked.append((what, asyncio.get_running_loop().time()))
        self.open += 1
        self.at_once = max(self.at_once, self.open)
        await asyncio.sleep(self.jobs if what == "jobs" else 0.5)
        self.open -= 1

    def times(self, what):
        return [moment for each, moment in self.asked if each == what]


async def follow(slow, seconds):
    refresher = Refresher(slow, RefreshOptions("demo", 1500.0), wall=asyncio.get_running_loop().time)
    task = asyncio.ensure_future(refresher.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])
    return refresher


@pytest.mark.looptime
async def test_who_answers_slowly_is_asked_seldom():
    """Jobs that take 40 s are asked for every 400 s, and nodes every 15 s all the while; never are there more than two requests."""
    slow = Slow(40.0)
    refresher = await follow(slow, 1210)
    assert slow.times("jobs") == pytest.approx([0, 400, 800, 1200], abs=1)
    assert len(slow.times("nodes")) > 70
    assert slow.at_once == 2
    assert refresher.sources["jobs"].read_at > 0
    assert 'slurm_jobs{slurm_cluster="demo",state="pending"}' in refresher.metrics().decode()


@pytest.mark.looptime
async def test_what_is_asked_seldom_is_kept_as_long():
    """It is no older than it has to be, so it is not dropped between two answers."""
    slow = Slow(40.0)
    refresher = await follow(slow, 430)
    refresher.wall = lambda: 40 + 360 + 40 + STALE - 1
    assert "slurm_jobs{" in refresher.metrics().decode()
    refresher.wall = lambda: 40 + 360 + 40 + STALE + 2
    refresher.sources["jobs"].failures += 1
    assert "slurm_jobs{" not in refresher.metrics().decode()


@pytest.mark.looptime
async def test_what_cannot_be_counted_is_told_and_the_rest_goes_on():
    """A fault of ours in one source is no reason to tell nothing of the others."""
    slow = Slow(1.0)
    real = slow.records

    async def records(what, *rest):
        if what == "partitions":
            raise ValueError("a fault")
        return await real(what, *rest)

    slow.records = records
    refresher = await follow(slow, 100)
    assert "cannot be evaluated" in refresher.sources["partitions"].trouble
    assert len(slow.times("nodes")) > 4
