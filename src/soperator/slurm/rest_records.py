"""The records of slurmrestd, reduced to the fields that the exporter counts, because decoding whole records of a large queue is slow.

Source: slurmrestd's data parser, and answers of slurmrestd 24.11 (tests/unit/slurm/answers).
"""

import re

import msgspec

from soperator.slurm.job import NEVER, Number
from soperator.slurm.node import RestNode

_GRES = re.compile(r"([A-Za-z][\w.-]*)(?::([^:,()]+))?:(\d+)([KMGT]?)(?:\([^)]*\))?")
_FACTORS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_TASKS = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


class NodeRecord(RestNode, frozen=True, gc=False):
    """A node with its resources; memory is in MiB."""

    alloc_cpus: int = 0
    alloc_memory: int = 0
    gres_used: str | None = None
    partitions: list[str] | None = None


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job; times are in seconds since 1970."""

    job_id: int
    job_state: list[str] | None = None
    user_name: str | None = None
    user_id: int = 0
    account: str | None = None
    partition: str | None = None
    state_reason: str | None = None
    array_task_string: str | None = None
    eligible_time: Number | int | None = None
    start_time: Number | int | None = None
    end_time: Number | int | None = None
    tres_alloc_str: str | None = None
    gres_detail: list[str] | None = None
    name: str | None = None
    node_count: Number | int | None = None
    features: str | None = None


class _State(msgspec.Struct, frozen=True, gc=False):
    state: list[str] | None = None


class PartitionRecord(msgspec.Struct, frozen=True, gc=False):
    """A partition, and whether it accepts and starts jobs."""

    name: str
    partition: _State | None = None

    @property
    def is_up(self) -> bool:
        """Whether the partition starts jobs."""
        return bool(self.partition and "UP" in (self.partition.state or ()))


class ReservationRecord(msgspec.Struct, frozen=True, gc=False):
    """A reservation of nodes, with its times in seconds since 1970."""

    name: str
    node_count: int = 0
    start_time: Number | int | None = None
    end_time: Number | int | None = None


class Rpc(msgspec.Struct, frozen=True, gc=False):
    """The number of requests of one kind or one user, and their total time in microseconds."""

    count: int = 0
    total_time: int = 0
    message_type: str | None = None
    user: str | None = None
    user_id: int = 0


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """slurmctld's statistics; times are in microseconds. Source: sdiag(1)."""

    schedule_cycle_total: int = 0
    schedule_cycle_sum: int = 0
    schedule_cycle_last: int = 0
    schedule_cycle_depth: int = 0
    schedule_queue_length: int = 0
    jobs_submitted: int = 0
    jobs_started: int = 0
    jobs_completed: int = 0
    jobs_canceled: int = 0
    jobs_failed: int = 0
    bf_backfilled_jobs: int = 0
    bf_cycle_counter: int = 0
    bf_cycle_sum: int = 0
    bf_cycle_last: int = 0
    bf_queue_len: int = 0
    bf_when_last_cycle: Number | int | None = None
    server_thread_count: int = 0
    agent_queue_size: int = 0
    dbd_agent_queue_size: int = 0
    rpcs_by_message_type: list[Rpc] | None = None
    rpcs_by_user: list[Rpc] | None = None


def value(raw: Number | int | None) -> float:
    """Return a number of the data parser: NEVER for an infinite one, 0 for one that is not set."""
    if isinstance(raw, Number):
        return NEVER if raw.infinite else float(raw.number or 0) if raw.set else 0.0
    return float(raw or 0)


def gres(text: str | None) -> dict[str, int]:
    """Return the number of each kind of GRES in a text such as `gpu:h100:8(S:0-1),shard:16`; a type is part of the name, `gpu:h100`."""
    found: dict[str, int] = {}
    for kind, type_, number, unit in _GRES.findall(text or ""):
        name = f"{kind}:{type_}" if type_ else kind
        found[name] = found.get(name, 0) + int(number) * _FACTORS[unit]
    return found


def gpus(job: JobRecord) -> int:
    """Return the number of GPUs that a job has on all its nodes together."""
    counted = [gres(each) for each in job.gres_detail or ()]
    return sum(many for each in counted for name, many in each.items() if name.partition(":")[0] == "gpu")


def cpus(job: JobRecord) -> int:
    """Return the number of CPUs that a job has on all its nodes together."""
    before, _, after = (job.tres_alloc_str or "").partition("cpu=")
    number = after.partition(",")[0]
    return int(number) if number.isdecimal() and (not before or before.endswith(",")) else 0


def tasks(job: JobRecord) -> int:
    """Return the number of jobs that a record represents: the pending tasks of an array are one record, `1-20:2,30%4`. Slurm shortens a long list."""
    if not job.array_task_string:
        return 1
    count = 0
    for low, high, step in _TASKS.findall(job.array_task_string.partition("%")[0]):
        count += (int(high) - int(low)) // max(1, int(step or 1)) + 1 if high else 1
    return max(1, count)
