"""A job as Slurm reports it, reduced to the fields that a drain or a deep check needs.

Source: slurmrestd's data parser; numbers come as `{set, infinite, number}`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from soperator.slurm.hostlist import expand

NEVER = float("inf")

_RUNNING = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"})


class Number(msgspec.Struct, frozen=True, gc=False):
    """A number of slurmrestd's data parser."""

    set: bool = True
    infinite: bool = False
    number: float | int | None = None


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """The fields that the operator reads of a job in the queue; the decoder skips all others."""

    job_id: int
    job_state: list[str] | None = None
    name: str | None = None
    user_id: int | None = None
    partition: str | None = None
    nodes: str | None = None
    required_nodes: str | None = None
    time_limit: Number | int | None = None
    submit_time: Number | int | None = None
    start_time: Number | int | None = None
    end_time: Number | int | None = None
    requeue: bool | None = None
    batch_flag: bool | None = None
    array_job_id: Number | int | None = None
    array_task_id: Number | int | None = None
    het_job_id: Number | int | None = None
    comment: str | None = None
    admin_comment: str | None = None


@dataclass(frozen=True)
class SlurmJob:
    """A job that holds nodes, running or suspended.

    `began` and `ends` are in seconds since 1970, `ends` is NEVER if the job has no time limit; `comment` is Slurm's AdminComment.
    `task` is the name of a task of an array, `<array>_<task>`; `leader` is the number of the first component of a heterogeneous job, else 0.
    Slurm signals no suspended job.
    """

    number: int
    nodes: frozenset[str]
    ends: float = NEVER
    may_requeue: bool = False
    comment: str = ""
    began: float = 0.0
    task: str = ""
    leader: int = 0
    is_suspended: bool = False

    @property
    def words(self) -> str:
        """The id with which Slurm signals, ends or requeues only this job.

        The last task of an array has the array's own number, which means all its tasks, on any nodes, and for a requeue also those that have ended
        (24.11, job_mgr.c, job_str_signal and job_requeue2). A heterogeneous job is ended or requeued as a whole, by the number of its leader: by its
        own number a component ends alone, and the others run on without it.
        """
        return self.task or str(self.leader or self.number)

    @property
    def label(self) -> str:
        """The job as messages name it, for example `job 12_3`."""
        return f"job {self.words}"


def read_job(record: QueuedJob) -> SlurmJob | None:
    """Return the job of a record; None for a pending or ended job. Raises ValueError for an invalid list of nodes."""
    if not record.nodes or not _RUNNING.intersection(record.job_state or ()):
        return None
    limit, end = number(record.time_limit), number(record.end_time)
    return SlurmJob(
        number=record.job_id,
        nodes=frozenset(expand(record.nodes)),
        ends=NEVER if NEVER in (limit, end) or not end else end,
        may_requeue=bool(record.requeue and record.batch_flag),
        comment=record.admin_comment or "",
        began=number(record.start_time),
        task=_task(record),
        leader=int(number(record.het_job_id)),
        is_suspended="SUSPENDED" in (record.job_state or ()),
    )


def with_leaders(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """Return the jobs. A component of a heterogeneous job may be requeued if its leader may, because only the leader has the batch script.

    A component whose leader is not among the jobs is a job of its own.
    """
    found = list(jobs)
    leaders = {each.number: each.may_requeue for each in found if each.leader == each.number}
    return [
        each
        if not each.leader
        else replace(each, may_requeue=leaders[each.leader])
        if each.leader in leaders
        else replace(each, leader=0)
        for each in found
    ]


def _task(record: QueuedJob) -> str:
    of, task = int(number(record.array_job_id)), record.array_task_id
    is_task = of and task is not None and not (isinstance(task, Number) and not task.set)
    return f"{of}_{int(number(task))}" if is_task else ""


@dataclass(frozen=True)
class CheckJob:
    """A job of a deep check, in any state; times are in seconds since 1970, 0 if Slurm does not report them."""

    number: int
    name: str
    node: str
    partition: str
    states: frozenset[str]
    comment: str = ""
    submitted: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    had_node: bool = False
    owner: str = ""
    user: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the job is pending."""
        return bool(self.states & {"PENDING", "REQUEUED", "REQUEUE_HOLD"})

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, including its cleanup."""
        return bool(self.states & _OVER) and "COMPLETING" not in self.states


_OVER = frozenset(
    {
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REVOKED",
    }
)


def read_check_job(record: QueuedJob) -> CheckJob:
    """Return a record as the job of a deep check."""
    return CheckJob(
        number=record.job_id,
        name=record.name or "",
        node=record.required_nodes or record.nodes or "",
        partition=record.partition or "",
        states=frozenset(record.job_state or ()),
        comment=record.admin_comment or "",
        submitted=number(record.submit_time),
        began=number(record.start_time),
        ended=number(record.end_time),
        had_node=bool(record.nodes),
        owner=record.comment or "",
        user=record.user_id,
    )


def number(raw: object) -> float:
    """Return a number of the data parser: NEVER for an infinite one, 0 for one that is not set."""
    if isinstance(raw, Mapping):
        raw = msgspec.convert(raw, Number, strict=False)
    if isinstance(raw, Number):
        return NEVER if raw.infinite else float(raw.number or 0) if raw.set else 0.0
    return float(raw) if isinstance(raw, int | float) else 0.0
