"""Converts slurmctld's statistics, partitions and reservations to metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from soperator.agents.exporter.bounds import SeriesNames, folded
from soperator.agents.exporter.users import UserNames
from soperator.observe import cluster as names
from soperator.observe.metric import Family, Metric, Sample
from soperator.slurm.rest_records import (
    PartitionRecord,
    ReservationRecord,
    Rpc,
    Statistics,
    value,
)


def _seconds(micro: float) -> float:
    return round(micro * 1e-6, 6)


class Scheduler:
    """Converts statistics to metrics; remembers which kinds of requests and which users have their own series."""

    def __init__(self, users: UserNames | None = None) -> None:
        self._known = users or UserNames()
        self._rpcs = SeriesNames(names.RPCS)
        self._users = SeriesNames(names.USERS)

    def families(self, said: Statistics) -> Iterator[Family]:
        """Yield all counts of slurmctld."""
        for metric, count in _plain(said):
            yield metric, [Sample((), count)]
        events = {
            "submitted": said.jobs_submitted,
            "started": said.jobs_started,
            "completed": said.jobs_completed,
            "canceled": said.jobs_canceled,
            "failed": said.jobs_failed,
        }
        yield names.DONE, [Sample((event,), count) for event, count in events.items()]
        by_type = [(each.message_type or "", each) for each in said.rpcs_by_message_type or ()]
        by_user = [(self._known.name(each.user, each.user_id), each) for each in said.rpcs_by_user or ()]
        yield from _rpcs(by_type, self._rpcs, names.RPC_COUNT, names.RPC_SECONDS)
        yield from _rpcs(by_user, self._users, names.USER_RPCS, names.USER_RPC_SECONDS)


def _plain(said: Statistics) -> Iterator[tuple[Metric, float]]:
    yield names.CYCLES, said.schedule_cycle_total
    yield names.CYCLE_SECONDS, _seconds(said.schedule_cycle_sum)
    yield names.CYCLE_LAST, _seconds(said.schedule_cycle_last)
    yield names.CYCLE_DEPTH, said.schedule_cycle_depth
    yield names.QUEUE, said.schedule_queue_length
    yield names.BACKFILLS, said.bf_cycle_counter
    yield names.BACKFILL_SECONDS, _seconds(said.bf_cycle_sum)
    yield names.BACKFILL_LAST, _seconds(said.bf_cycle_last)
    yield names.BACKFILL_WHEN, value(said.bf_when_last_cycle)
    yield names.BACKFILL_JOBS, said.bf_backfilled_jobs
    yield names.BACKFILL_QUEUE, said.bf_queue_len
    yield names.THREADS, said.server_thread_count
    yield names.AGENTS, said.agent_queue_size
    yield names.DBD_QUEUE, said.dbd_agent_queue_size


def _rpcs(said: Sequence[tuple[str, Rpc]], settled: SeriesNames, many: Metric, seconds: Metric) -> Iterator[Family]:
    kept = settled.names_after(name for name, _ in said)
    counts: Counter[tuple[str]] = Counter()
    times: dict[tuple[str], float] = {}
    for name, each in said:
        counts[(name,)] += each.count
        times[(name,)] = times.get((name,), 0.0) + each.total_time
    yield many, folded(counts, kept)
    yield seconds, [Sample(each.labels, _seconds(each.value)) for each in folded(times, kept)]


def partitions(found: Iterable[PartitionRecord]) -> Iterator[Family]:
    """Yield whether each partition starts jobs."""
    some = sorted(found, key=lambda each: each.name)[: names.PARTITIONS]
    yield names.PARTITION_UP, [Sample((each.name,), float(each.is_up)) for each in some]


def reservations(found: Iterable[ReservationRecord]) -> Iterator[Family]:
    """Yield the sizes and the times of reservations."""
    some = sorted(found, key=lambda each: (value(each.start_time), each.name))[: names.RESERVATIONS]
    yield names.RESERVATION_NODES, [Sample((each.name,), each.node_count) for each in some]
    yield names.RESERVATION_START, [Sample((each.name,), value(each.start_time)) for each in some]
    yield names.RESERVATION_END, [Sample((each.name,), value(each.end_time)) for each in some]
