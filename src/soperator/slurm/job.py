"""A job as Slurm itself reports it, as far as it concerns who drains a node.

Source: the REST parser v0.0.42; numbers come as `{set, infinite, number}`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from soperator.slurm.hostlist import expand

NEVER = float("inf")

_RUNNING = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT"})


@dataclass(frozen=True)
class SlurmJob:
    """A job that holds nodes. `ends` is in seconds since 1970, NEVER without a time limit; `comment` is Slurm's AdminComment."""

    number: int
    nodes: frozenset[str]
    ends: float = NEVER
    may_requeue: bool = False
    comment: str = ""

    @property
    def said(self) -> str:
        """The job in two words."""
        return f"job {self.number}"


def read_jobs(raw: Iterable[Mapping[str, Any]]) -> list[SlurmJob]:
    """The jobs that run, of slurmrestd's v0.0.42 JSON; those that wait or have ended are left out."""
    return [_job(each) for each in raw if _RUNNING & set(each.get("job_state") or ()) and each.get("nodes")]


def _job(raw: Mapping[str, Any]) -> SlurmJob:
    limit, end = number(raw.get("time_limit")), number(raw.get("end_time"))
    return SlurmJob(
        number=int(raw["job_id"]),
        nodes=frozenset(expand(raw["nodes"])),
        ends=NEVER if NEVER in (limit, end) or not end else end,
        may_requeue=bool(raw.get("requeue")) and bool(raw.get("batch_flag")),
        comment=raw.get("admin_comment") or "",
    )


@dataclass(frozen=True)
class CheckJob:
    """A job of a deep check, at whatever point of its life; times in seconds since 1970, 0 where they are not known."""

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

    @property
    def is_waiting(self) -> bool:
        """Whether it has not begun."""
        return bool(self.states & {"PENDING", "REQUEUED", "REQUEUE_HOLD"})

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and is cleaned up."""
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


def read_check_job(raw: Mapping[str, Any]) -> CheckJob:
    """A job of slurmrestd's v0.0.42 JSON as that of a check."""
    return CheckJob(
        number=int(raw["job_id"]),
        name=str(raw.get("name") or ""),
        node=str(raw.get("required_nodes") or raw.get("nodes") or ""),
        partition=str(raw.get("partition") or ""),
        states=frozenset(raw.get("job_state") or ()),
        comment=str(raw.get("admin_comment") or ""),
        submitted=number(raw.get("submit_time")),
        began=number(raw.get("start_time")),
        ended=number(raw.get("end_time")),
        had_node=bool(raw.get("nodes")),
        owner=str(raw.get("comment") or ""),
    )


def number(raw: object) -> float:
    """A number of the REST parser, NEVER for an infinite one, 0 for one that is not set."""
    if isinstance(raw, Mapping):
        if raw.get("infinite"):
            return NEVER
        return float(raw.get("number") or 0) if raw.get("set", True) else 0.0
    return float(raw) if isinstance(raw, int | float) else 0.0
