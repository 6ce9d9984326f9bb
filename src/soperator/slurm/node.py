"""A Slurm node as Slurm itself reports it, and the few questions that we ask of it.

A state is a base (IDLE, ALLOCATED, MIXED, DOWN, UNKNOWN, FUTURE, ERROR) and flags (DRAIN, COMPLETING, NOT_RESPONDING, …). Drained means DRAIN
set *and* none of ALLOCATED, MIXED and COMPLETING: a peer took DRAIN with ALLOCATED for drained and killed running jobs.
Source: slurm.h NODE_STATE_*, the REST parser v0.0.42.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from soperator.slurm.job import number

#: Reasons that we write into Slurm begin so, and only those do we ever clear.
REASON_PREFIX = "soperator: "

_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_UP = frozenset({"IDLE", "ALLOCATED", "MIXED"})
_UNUSABLE = frozenset(
    {"DOWN", "NOT_RESPONDING", "INVALID_REG", "ERROR", "UNKNOWN", "FAIL", "REBOOT_ISSUED", "POWERED_DOWN"}
)


@dataclass(frozen=True)
class SlurmNode:
    """One Slurm node at the time of one answer."""

    name: str
    states: frozenset[str]
    reason: str = ""
    address: str = ""
    boot_time: int = 0
    started: int = 0
    reason_at: float = 0.0
    reason_by: str = ""
    last_busy: float = field(default=0.0, compare=False)

    @property
    def is_busy(self) -> bool:
        """Whether a job runs on it or is still being cleaned up; a state that we do not know counts as busy."""
        return bool(self.states & _BUSY) or not self.states

    @property
    def is_draining(self) -> bool:
        """Whether no new job may start on it."""
        return "DRAIN" in self.states

    @property
    def is_drained(self) -> bool:
        """Whether nothing runs on it and nothing can start."""
        return self.is_draining and not self.is_busy

    @property
    def is_down(self) -> bool:
        """Whether Slurm has given it up."""
        return "DOWN" in self.states

    @property
    def is_up(self) -> bool:
        """Whether it is registered, answers, and takes jobs or runs them."""
        return bool(self.states & _UP) and not self.states & _UNUSABLE

    @property
    def is_ours(self) -> bool:
        """Whether its reason is one that we wrote."""
        return self.reason.startswith(REASON_PREFIX)

    @property
    def is_administrators(self) -> bool:
        """Whether a person took it out of service; slurmctld and the operator sign as SlurmUser."""
        return self.reason_by not in ("", "slurm") and (self.is_draining or self.is_down) and not self.is_ours

    @property
    def is_slurms(self) -> bool:
        """Whether slurmctld itself took it out of service, for a job that could not be launched or did not end; it never takes that back."""
        return self.reason_by == "slurm" and self.is_draining and not self.is_ours

    @property
    def said(self) -> str:
        """The state in Slurm's words, with the reason where there is one."""
        state = "+".join(sorted(self.states)) or "UNKNOWN"
        return f"{state} ({self.reason})" if self.reason else state


def read_node(raw: Mapping[str, Any]) -> SlurmNode:
    """A node from slurmrestd's v0.0.42 JSON."""
    return SlurmNode(
        name=raw["name"],
        states=frozenset(raw.get("state") or ()),
        reason=raw.get("reason") or "",
        address=raw.get("address") or "",
        boot_time=int(number(raw.get("boot_time"))),
        started=int(number(raw.get("slurmd_start_time"))),
        reason_by=raw.get("reason_set_by_user") or "",
        reason_at=number(raw.get("reason_changed_at")),
        last_busy=number(raw.get("last_busy")),
    )
