"""Counts the jobs of one answer, and the starts and ends between two answers."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from operator import attrgetter

from soperator.agents.exporter.bounds import SeriesNames, folded, top, totals
from soperator.agents.exporter.users import UserNames
from soperator.observe import cluster as names
from soperator.observe.metric import OTHER, Family, Metric, Sample
from soperator.slurm.job import NEVER
from soperator.slurm.rest_records import (
    JobRecord,
    cpus,
    gpus,
    tasks,
    value,
)

#: Reasons of jobs that only wait for other jobs.
_COULD_BEGIN = frozenset({"Resources", "Priority", "None", "Licenses"})
#: Reasons of jobs that wait for nodes that do not exist yet.
_NO_NODES = "ReqNodeNotAvail"
#: The names in a constraint, such as `[rack1|rack2]&gpu*2`.
_WORDS = re.compile(r"[A-Za-z][\w.-]*")
_RUNS = ("running", "completing", "configuring", "suspended")
#: How many waiting jobs the page shows.
_SHOWN = 20


@dataclass(frozen=True)
class PendingJob:
    """A pending job on the page for people; `since` in seconds since 1970."""

    number: int
    user: str
    account: str
    partition: str
    reason: str
    since: float


@dataclass
class JobCounters:
    """Counts jobs that started or ended since the exporter's start, without remembering jobs.

    A start or an end belongs to exactly one answer: the one in whose span of slurmctld's time it happened. The span begins with the time of the
    previous answer, and ends before the second of this one, because more jobs may start in that second.
    """

    since: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    waits: dict[str, list[float]] = field(default_factory=dict)
    partitions: SeriesNames = field(default_factory=lambda: SeriesNames(names.PARTITIONS))

    def began(self, partition: str, wait: float) -> None:
        """Count the start of a job, with its waiting time in seconds."""
        name = partition if partition in self.partitions.names_after([partition]) else OTHER
        counts = self.waits.setdefault(name, [0.0] * (len(names.WAITS) + 2))
        for place, limit in enumerate((*names.WAITS, NEVER)):
            counts[place] += wait <= limit
        counts[-1] += wait

    def families(self) -> Iterator[Family]:
        """Yield the metrics of ended jobs and of waiting times."""
        yield names.FINISHED, [Sample((state,), self.ended[state]) for state in names.ENDED]
        yield names.WAIT, [each for name in sorted(self.waits) for each in self._histogram(name)]

    def _histogram(self, name: str) -> Iterator[Sample]:
        *counts, whole = self.waits[name]
        for limit, count in zip((*names.WAITS, NEVER), counts, strict=True):
            yield Sample((name, "+Inf" if limit == NEVER else f"{limit:g}"), count, "_bucket")
        yield Sample((name,), whole, "_sum")
        yield Sample((name,), counts[-1], "_count")


def state_of(job: JobRecord) -> str:
    """Return the only state in which a job is counted."""
    said = [each.lower() for each in job.job_state or ()]
    if "completing" in said:
        return "completing"
    return next((each for each in said if each in names.JOB_STATES), OTHER)


class JobCounts:
    """Counts the jobs of an answer, and adds new starts and ends to `flow`; `sets` maps each partition to its NodeSets, if nodes are known."""

    def __init__(
        self, flow: JobCounters, users: UserNames | None = None, sets: Mapping[str, Set[str]] | None = None
    ) -> None:
        self._flow, self._users, self._sets = flow, users or UserNames(), sets or {}
        self._counts: dict[Metric, Counter[tuple[str, ...]]] = {}
        self._oldest: dict[str, float] = {}
        self._news: list[JobRecord] = []
        self._waiting: list[PendingJob] = []
        self._counter(names.JOBS).update({(state,): 0 for state in names.JOB_STATES})
        self._counter(names.NODESET_WANTED).update({(each,): 0 for found in self._sets.values() for each in found})

    def take(self, job: JobRecord) -> None:
        """Count a record, which may represent many tasks of an array."""
        state = state_of(job)
        if state == "pending":
            self._pending(job)
            return
        self._counter(names.JOBS)[(state,)] += 1
        runs = state in _RUNS
        if runs:
            self._active(job, "running" if state == "running" else OTHER, 1)
            for label, cpu, gpu in (
                (self._user(job), names.USER_CPUS, names.USER_GPUS),
                (job.account or "", names.ACCOUNT_CPUS, names.ACCOUNT_GPUS),
            ):
                self._counter(cpu)[(label,)] += cpus(job)
                self._counter(gpu)[(label,)] += gpus(job)
        if self._flow.since and max(value(job.start_time), 0 if runs else value(job.end_time)) >= self._flow.since:
            self._news.append(job)

    def settle(self, moment: int) -> None:
        """Finish an answer, so that jobs that started or ended before its time are counted once."""
        flow = self._flow
        for job in self._news:
            start, end, state = value(job.start_time), value(job.end_time), state_of(job)
            if state != "completing" and flow.since <= end < moment and state in names.ENDED:
                flow.ended[state] += 1
            if flow.since <= start < moment and (since := value(job.eligible_time)):
                flow.began(_partition(job), max(0.0, start - since))
        flow.since = moment

    def families(self) -> Iterator[Family]:
        """Yield all metrics of the answer."""
        yield names.JOBS, [Sample(labels, count) for labels, count in sorted(self._counter(names.JOBS).items())]
        yield from self._top(names.REASONS, names.PENDING)
        yield from self._top(names.USERS, names.USER_JOBS, names.USER_CPUS, names.USER_GPUS)
        yield from self._top(names.ACCOUNTS, names.ACCOUNT_JOBS, names.ACCOUNT_CPUS, names.ACCOUNT_GPUS)
        yield from self._top(names.PARTITIONS, names.PARTITION_JOBS, names.PARTITION_WANTED)
        yield from self._top(names.NODESETS, names.NODESET_WANTED)
        kept = top(totals(self._counter(names.PARTITION_JOBS)), names.PARTITIONS)
        yield names.OLDEST, [Sample((name,), since) for name, since in sorted(self._oldest.items()) if name in kept]
        yield from self._flow.families()

    @property
    def waiting(self) -> list[PendingJob]:
        """The jobs that have been pending longest."""
        return sorted(self._waiting, key=attrgetter("since", "number"))[:_SHOWN]

    def _pending(self, job: JobRecord) -> None:
        many, reason, since = tasks(job), job.state_reason or "None", value(job.eligible_time)
        self._counter(names.JOBS)[("pending",)] += many
        self._counter(names.PENDING)[(reason,)] += many
        self._active(job, "pending", many)
        if reason in _COULD_BEGIN or reason.startswith(_NO_NODES):
            wanted = many * max(1, int(value(job.node_count)))
            self._counter(names.PARTITION_WANTED)[(_partition(job),)] += wanted
            for nodeset in self._nodesets(job):
                self._counter(names.NODESET_WANTED)[(nodeset,)] += wanted
        if not since or reason not in _COULD_BEGIN:
            return
        partition = _partition(job)
        self._oldest[partition] = min(since, self._oldest.get(partition, NEVER))
        self._waiting.append(PendingJob(job.job_id, self._user(job), job.account or "", partition, reason, since))
        if len(self._waiting) > 50 * _SHOWN:
            self._waiting = self.waiting

    def _nodesets(self, job: JobRecord) -> Set[str]:
        """Return the NodeSets on whose nodes a job may run."""
        found = {each for name in (job.partition or "").split(",") for each in self._sets.get(name, ())}
        return found.intersection(_WORDS.findall(job.features or "")) or found

    def _active(self, job: JobRecord, state: str, many: int) -> None:
        self._counter(names.USER_JOBS)[self._user(job), state] += many
        self._counter(names.ACCOUNT_JOBS)[job.account or "", state] += many
        self._counter(names.PARTITION_JOBS)[_partition(job), state] += many
        self._counter(names.PARTITION_WANTED)[(_partition(job),)] += 0  # a number too, for autoscalers

    def _top(self, most: int, first: Metric, *others: Metric) -> Iterator[Family]:
        """Families with the same names; the names with the largest values in the first family have their own series."""
        kept = top(totals(self._counter(first)), most)
        for metric in (first, *others):
            yield metric, folded(self._counter(metric), kept)

    def _user(self, job: JobRecord) -> str:
        return self._users.name(job.user_name, job.user_id)

    def _counter(self, metric: Metric) -> Counter[tuple[str, ...]]:
        return self._counts.setdefault(metric, Counter())


def _partition(job: JobRecord) -> str:
    return (job.partition or "").partition(",")[0]
