"""Polls slurmrestd, and keeps the results to serve.

A long list of jobs takes time, so it is read in parallel with the other sources, which are read one after the other. A pause follows each answer,
nine times as long as the answer took, because slurmrestd, and slurmctld's locks behind it, are for users first.

Results stay for a while after Slurm has stopped answering, with `slurm_up` at 0. Then they are dropped, so that no alert uses old data.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from soperator.agents.exporter.jobs import JobCounters, JobCounts, PendingJob
from soperator.agents.exporter.nodes import Nodes, UnhealthyNode
from soperator.agents.exporter.scheduler import Scheduler, partitions, reservations
from soperator.agents.exporter.users import UserNames
from soperator.observe import cluster as names
from soperator.observe.exposition import pieces, text
from soperator.observe.metric import Family, Sample
from soperator.slurm.rest_records import (
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Statistics,
)
from soperator.slurmrest.client import SlurmError
from soperator.slurmrest.reader import ListReader

#: The shortest seconds between two requests to a source; its rest as a multiple of the time that its answer took; and the longest rest in seconds.
PERIODS = {"nodes": 15.0, "jobs": 30.0, "diag": 30.0, "partitions": 60.0, "reservations": 60.0}
REST, LONGEST = 9.0, 900.0
#: Sources that are read one after the other.
LANES = (("jobs",), ("nodes", "diag", "partitions", "reservations"))
#: Seconds after which an answer that could not be renewed is no longer exported.
STALE = 300.0
#: Seconds after a failure until a source is asked again.
AGAIN = 10.0


@dataclass(frozen=True)
class RefreshOptions:
    """The cluster's name, the seconds after which a node's checks count as not running, and whether each node has its own series.

    `private` hides the owners of pending jobs. `users` is the file with the jail's users, if there is one.
    """

    cluster: str
    silence: float
    each_node: bool = True
    private: bool = False
    users: Path | None = None


@dataclass
class AnswerState:
    """The last answer of one kind; times are in seconds since 1970, 0 for never."""

    name: str
    due: float = 0.0
    pause: float = 0.0
    read_at: float = 0.0
    took: float = 0.0
    failures: int = 0
    trouble: str = ""
    section: bytes = b""

    @property
    def kept(self) -> float:
        """The seconds for which the current answer will be used: until the next one arrives."""
        return self.pause + self.took

    @property
    def is_up(self) -> bool:
        """Whether the last query succeeded."""
        return bool(self.read_at) and not self.trouble


@dataclass
class ClusterView:
    """The data of the page for people, from slurmrestd's last answers."""

    version: str = ""
    nodes: dict[str, float] = field(default_factory=dict)
    shares: dict[str, dict[str, float]] = field(default_factory=dict)
    health: dict[str, float] = field(default_factory=dict)
    unwell: list[UnhealthyNode] = field(default_factory=list)
    jobs: dict[str, float] = field(default_factory=dict)
    waiting: list[PendingJob] = field(default_factory=list)


class Refresher:
    """Keeps the metrics of one cluster up to date; `wall` returns the time of day."""

    def __init__(self, reader: ListReader, options: RefreshOptions, wall: Callable[[], float] = time.time) -> None:
        self.seen = ClusterView()
        self.sources = {name: AnswerState(name) for name in PERIODS}
        self.options = options
        self.wall = wall
        self._reader = reader
        self._flow = JobCounters()
        self._jobs_at = 0
        self._sets: dict[str, set[str]] = {}
        self._users = UserNames(options.users)
        self._scheduler = Scheduler(self._users)
        self._served: tuple[tuple[bytes, ...], bytes] | None = None
        self._readers: dict[str, Callable[[], Awaitable[Iterable[Family] | None]]] = {
            "nodes": self._nodes, "jobs": self._jobs, "diag": self._diag,
            "partitions": self._partitions, "reservations": self._reservations,
        }  # fmt: skip

    async def run(self) -> None:
        """Refresh until cancelled; no error of slurmrestd ends this."""
        async with asyncio.TaskGroup() as group:
            for lane in LANES:
                group.create_task(self._follow([self.sources[name] for name in lane]))

    async def _follow(self, lane: Sequence[AnswerState]) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            source = min(lane, key=lambda each: each.due)
            await asyncio.sleep(max(0.0, source.due - clock()))
            began = clock()
            await self.once(source)
            long = max(PERIODS[source.name], min(LONGEST, REST * (clock() - began)))
            source.pause = source.pause if source.trouble else long
            source.due = clock() + (AGAIN if source.trouble else long)

    async def once(self, source: AnswerState) -> None:
        """Query one source, and keep its answer, or the cause of its absence."""
        await self._once(source)
        self._served = None

    async def _once(self, source: AnswerState) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            families = await self._readers[source.name]()
        except SlurmError as error:
            self._failed(source, str(error))
            return
        except Exception as error:  # a record that cannot be counted does not affect the other sources
            if not source.trouble:
                structlog.get_logger().exception("cannot count", source=source.name)
            self._failed(source, f"the answer about {source.name} cannot be evaluated: {error!r}")
            return
        source.took, source.read_at = clock() - began, self.wall()
        if source.trouble:
            structlog.get_logger().info("slurmrestd answers again", source=source.name)
        source.trouble = ""
        if families is not None:
            source.section = await self._written(families)

    def metrics(self) -> bytes:
        """Return the page of metrics: the last answers that are not too old, and the age of each.

        The same object is returned while its content is unchanged.
        """
        now = self.wall()
        fresh = tuple(each.section for each in self.sources.values() if now - each.read_at <= STALE + each.kept)
        if self._served is None or self._served[0] != fresh:
            self._served = fresh, b"".join([*fresh, text(self._own(), self.options.cluster)])
        return self._served[1]

    async def _written(self, families: Iterable[Family]) -> bytes:
        """Encode the families as text; after about every thousand lines other requests may run."""
        parts = []
        for piece in pieces(families, self.options.cluster):
            parts.append(piece)
            await asyncio.sleep(0)
        return b"".join(parts)

    def _failed(self, source: AnswerState, why: str) -> None:
        if why != source.trouble:
            structlog.get_logger().warning(why, source=source.name)
        source.failures += 1
        source.trouble = why

    def _own(self) -> Iterator[Family]:
        every = self.sources.values()
        yield names.UP, [Sample((each.name,), float(each.is_up)) for each in every]
        yield names.REFRESHED, [Sample((each.name,), each.read_at) for each in every if each.read_at]
        yield names.REFRESH, [Sample((each.name,), each.took) for each in every if each.read_at]
        yield names.FAILURES, [Sample((each.name,), each.failures) for each in every]
        if self.seen.version:
            yield names.VERSION, [Sample((self.seen.version,), 1)]

    async def _nodes(self) -> list[Family]:
        nodes = Nodes(self.wall(), self.options.silence, self.options.each_node)
        answer = await self._reader.records("nodes", NodeRecord, nodes.take)
        families = list(nodes.families())
        said = answer.said or {}
        self.seen.version = str(((said.get("meta") or {}).get("slurm") or {}).get("release") or "")
        self.seen.nodes, self.seen.health = _plain(families, names.NODES.name), _plain(families, names.HEALTH.name)
        self.seen.shares = {"CPUs": _plain(families, names.CPUS.name), **_by_gres(families)}
        self.seen.unwell = nodes.unwell
        if nodes.sets != self._sets:
            self._sets, self._jobs_at = nodes.sets, 0  # the jobs are counted by them
        return families

    async def _jobs(self) -> list[Family] | None:
        self._users.refresh()
        jobs = JobCounts(self._flow, self._users, self._sets)
        answer = await self._reader.records("jobs", JobRecord, jobs.take, self._jobs_at)
        if not answer.has_news:
            return None
        self._jobs_at = answer.moment
        jobs.settle(answer.moment)
        families = list(jobs.families())
        self.seen.jobs, self.seen.waiting = _plain(families, names.JOBS.name), jobs.waiting
        return families

    async def _diag(self) -> Iterable[Family]:
        return list(self._scheduler.families(await self._reader.one("diag", "statistics", Statistics)))

    async def _partitions(self) -> Iterable[Family]:
        found: list[PartitionRecord] = []
        await self._reader.records("partitions", PartitionRecord, found.append)
        return list(partitions(found))

    async def _reservations(self) -> Iterable[Family]:
        found: list[ReservationRecord] = []
        await self._reader.records("reservations", ReservationRecord, found.append)
        return list(reservations(found))


def _plain(families: Iterable[Family], name: str) -> dict[str, float]:
    """Return the samples of a family with one label, by the label's value."""
    return {each.labels[0]: each.value for metric, samples in families if metric.name == name for each in samples}


def _by_gres(families: Iterable[Family]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for each in (each for metric, samples in families if metric is names.GENERIC for each in samples):
        found.setdefault(each.labels[0], {})[each.labels[1]] = each.value
    return found
