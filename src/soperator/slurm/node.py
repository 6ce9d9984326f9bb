"""A Slurm node as Slurm reports it, with the properties that the policies use.

A state is a base (IDLE, ALLOCATED, MIXED, DOWN, UNKNOWN, FUTURE, ERROR) and flags (DRAIN, COMPLETING, NOT_RESPONDING, …). Drained means DRAIN set
*and* none of ALLOCATED, MIXED and COMPLETING *and* no suspended job (`held`): another operator treated DRAIN with ALLOCATED as drained, and killed
jobs. Source: slurm.h NODE_STATE_*, slurmrestd's data parser.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import msgspec

from soperator.checks import report
from soperator.checks.report import Report
from soperator.slurm.job import Number, SlurmJob, number

#: The prefix of our reasons in Slurm; only reasons with it that SlurmUser signed are ever cleared.
REASON_PREFIX = "soperator: "

#: Who signs what slurmctld and the operator write: SlurmUser; empty for a node without a reason.
_SIGNED = ("", "slurm")
#: Who signed a reason if slurmrestd has no name for the user: its container knows only the users of its image, among them SlurmUser.
SOMEBODY = "somebody"

_SOCKETS = re.compile(r"\([^)]*\)")
_SHARD_TYPE = re.compile(r"\bshard:[^:,()]+:")
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
#: Flags that every worker has.
_ALWAYS = frozenset({"DYNAMIC_NORM"})
#: Base states in which no job is on a node, unless a flag says otherwise.
_QUIET = frozenset({"IDLE", "DOWN", "FUTURE"})
_UP = frozenset({"IDLE", "ALLOCATED", "MIXED"})
_UNUSABLE = frozenset(
    {"DOWN", "NOT_RESPONDING", "INVALID_REG", "ERROR", "UNKNOWN", "FAIL", "REBOOT_ISSUED", "POWERED_DOWN"}
)


@dataclass(frozen=True)
class Shape:
    """What Slurm allocates on a node: whole CPUs, memory in MiB."""

    cpus: int
    memory: int
    features: frozenset[str]
    weight: int = 1
    gres: str = ""


@dataclass(frozen=True)
class SlurmNode:
    """One Slurm node at the time of one answer of slurmrestd.

    `is_held` is true if only the list of jobs shows a job on it: a suspended job whose memory Slurm does not count leaves its node IDLE,
    with its processes in memory (24.11, SelectTypeParameters=CR_Core).
    """

    name: str
    states: frozenset[str]
    reason: str = ""
    address: str = ""
    boot_time: int = 0
    started: int = 0
    reason_at: float = 0.0
    reason_by: str = ""
    last_busy: float = field(default=0.0, compare=False)
    report: Report | None = None
    shape: Shape | None = None
    is_held: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether a job is on the node or is still being cleaned up; a state that this release does not know counts as busy."""
        return self.is_held or bool(self.states & _BUSY) or not self.states & _QUIET

    @property
    def is_draining(self) -> bool:
        """Whether no new job may start on the node."""
        return "DRAIN" in self.states

    @property
    def is_drained(self) -> bool:
        """Whether nothing runs on the node and nothing can start."""
        return self.is_draining and not self.is_busy

    @property
    def is_down(self) -> bool:
        """Whether Slurm has set the node DOWN."""
        return "DOWN" in self.states

    @property
    def is_up(self) -> bool:
        """Whether the node is registered, answers, and is in service."""
        return bool(self.states & _UP) and not self.states & _UNUSABLE

    @property
    def our_reason(self) -> str:
        """The node's reason if the operator wrote it, else empty. A person may begin a reason with our prefix, but does not sign as SlurmUser."""
        return self.reason if self.reason.startswith(REASON_PREFIX) and self.reason_by in _SIGNED else ""

    @property
    def is_ours(self) -> bool:
        """Whether the operator wrote the node's reason."""
        return bool(self.our_reason)

    @property
    def is_administrators(self) -> bool:
        """Whether a person took the node out of service; slurmctld and the operator sign as SlurmUser."""
        return self.reason_by not in _SIGNED and (self.is_draining or self.is_down)

    @property
    def is_slurms(self) -> bool:
        """Whether slurmctld itself drained the node, because a job failed to start or did not end; slurmctld never resumes such a node itself."""
        return self.reason_by == "slurm" and self.is_draining and not self.is_ours

    @property
    def remedy(self) -> str:
        """The remedy for a drain that slurmctld set, as a message.

        A slurmctld that was killed may reuse job ids that a slurmd still knows, and slurmd refuses such jobs. After a reconfigure slurmd has executed
        itself again, and knows only running jobs (slurmd/req.c, `_launch_job_test`).
        """
        return (
            "run scontrol reconfigure, then resume the node"
            if self.reason == "Duplicate jobid"
            else "when the cause is gone, resume the node with scontrol"
        )

    @property
    def state_text(self) -> str:
        """The state in Slurm's words, with the reason if the node has one, without the flags that every worker has."""
        state = "+".join(sorted(self.states - _ALWAYS)) or "UNKNOWN"
        return f"{state} ({self.reason})" if self.reason else state


def held(nodes: Mapping[str, SlurmNode], jobs: Iterable[SlurmJob]) -> dict[str, SlurmNode]:
    """Return the nodes by name; a node with a suspended job counts as busy, although its state does not show the job."""
    holders = {name for job in jobs for name in job.nodes}
    return {
        name: replace(each, is_held=True) if name in holders and not each.is_busy else each
        for name, each in nodes.items()
    }


class RestNode(msgspec.Struct, frozen=True, gc=False):
    """The fields that the operator reads of a node in slurmrestd's JSON; the decoder skips all others. The operator keeps records to detect
    changes.
    """

    name: str
    state: frozenset[str] | None = None
    reason: str | None = None
    address: str | None = None
    boot_time: Number | int | None = None
    slurmd_start_time: Number | int | None = None
    reason_set_by_user: str | None = None
    reason_changed_at: Number | int | None = None
    last_busy: Number | int | None = None
    extra: str | None = None
    cpus: int = 0
    real_memory: int = 0
    features: list[str] | None = None
    weight: int = 1
    gres: str | None = None


def read_node(record: RestNode) -> SlurmNode:
    """Return the node that a record describes."""
    return SlurmNode(
        name=record.name,
        states=record.state or frozenset(),
        reason=record.reason or "",
        address=record.address or "",
        boot_time=int(number(record.boot_time)),
        started=int(number(record.slurmd_start_time)),
        reason_by=record.reason_set_by_user or (SOMEBODY if record.reason else ""),
        reason_at=number(record.reason_changed_at),
        last_busy=number(record.last_busy),
        report=report.read(record.extra) if record.extra else None,
        shape=None
        if record.features is None
        else _shape(record.cpus, record.real_memory, tuple(record.features), record.weight, record.gres or ""),
    )


@lru_cache(maxsize=256)
def _shape(cpus: int, memory: int, features: tuple[str, ...], weight: int, gres: str) -> Shape:
    """Return the shape of a node; equal nodes share one object. GRES is without the sockets and the types of shards that slurmd adds."""
    return Shape(cpus, memory, frozenset(features), weight, _SHARD_TYPE.sub("shard:", _SOCKETS.sub("", gres)))
