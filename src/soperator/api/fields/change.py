"""How the nodes of a NodeSet may change while jobs run on them: rollout, drain, maintenance of Nodes, loss of Nodes.

The defaults never end a job. A setting that may end one (`drain.onTimeout`) has to be set explicitly, with its timeout.
"""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from soperator.api.base import Model
from soperator.api.validation.cel import Rule
from soperator.api.validation.schedule import SCHEDULE

DURATION = r"^([0-9]+[smhd])+$"
SHARE = r"^([0-9]+|[0-9]{1,2}%|100%)$"
SOME = r"^([1-9][0-9]*|[1-9][0-9]?%|100%)$"
TAINT = r"^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> float:
    """Return the length of a duration such as `90s` or `1d12h`; raises ValueError for another text."""
    if not re.fullmatch(DURATION, duration):
        raise ValueError(f"{duration}: write a duration such as 30s, 10m, 2h or 1d12h")
    return float(sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smhd])", duration)))


def share(of: int, text: str) -> int:
    """Return a number, or a percentage of `of` rounded down, and at least 1 unless it is plainly 0."""
    part = of * int(text[:-1]) // 100 if text.endswith("%") else int(text)
    return part if text in ("0", "0%") else max(1, part)


def _number_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Duration = Annotated[str, Field(pattern=DURATION, max_length=32)]
MaybeDuration = Annotated[str, Field(pattern=r"^([0-9]+[smhd])*$", max_length=32)]
Share = Annotated[
    str,
    Field(pattern=SHARE, max_length=16, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Schedule = Annotated[str, Field(pattern=SCHEDULE, max_length=256)]
Key = Annotated[str, Field(pattern=TAINT, max_length=316)]


class Window(Model):
    """When the replacement of a node may begin."""

    schedule: Schedule = Field(
        description="When the window opens, as a CronJob's schedule in UTC: minute, hour, day, month, weekday, or @daily and its like."
    )
    duration: Duration = Field(default="4h", description="How long it stays open.")


class UpdateStrategy(Model):
    """How pods of a former template are replaced."""

    type: Literal["RollingUpdate", "OnDelete"] = Field(
        default="RollingUpdate",
        description="RollingUpdate: the operator replaces them. OnDelete: each is replaced when a person deletes it.",
    )
    max_unavailable: Share = Field(
        default="1",
        description="How many nodes may be out of service at once: a number, or a percentage of replicas (rounded down, at least 1).",
    )
    busy: Literal["Drain", "Wait"] = Field(
        default="Drain",
        description=(
            "Idle nodes are always replaced first. Then, Drain: a busy node gets no new job, and is replaced when its jobs have "
            "ended. Wait: it continues to get jobs, and is replaced when it happens to be idle."
        ),
    )
    window: Window | None = Field(
        default=None, description="Outside of this window no further node is taken; none means always."
    )
    progress_deadline_seconds: Annotated[int, Field(ge=1, le=86400)] = Field(
        default=600,
        description="A replaced node that is not in service after this many seconds stops the rollout; so does one that cannot start, at once.",
    )


class DrainSpec(Model):
    """How long a drain of ours waits for the jobs of a node, and what happens then."""

    timeout: MaybeDuration = Field(
        default="", description="How long jobs may go on after the drain began; empty means as long as they like."
    )
    on_timeout: Literal["Wait", "Requeue", "Cancel"] = Field(
        default="Wait",
        description=(
            "What becomes of jobs that run longer. Wait: nothing. Requeue: batch jobs that may be requeued are, others are cancelled. "
            "Cancel: all are cancelled."
        ),
    )
    warning_signal: Literal["", "CONT", "URG", "USR1", "USR2", "TERM", "INT", "HUP"] = Field(
        default="CONT",
        description=(
            "Signal that warns a job before. CONT and URG end no process that does not expect them; the others do. Empty: none."
        ),
    )
    warning_period: Duration = Field(
        default="5m", description="How long before its end a job is warned; it always gets this time."
    )


class Preemptible(Model):
    """Nodes that Kubernetes may preempt for pods of a higher priority, after their jobs have ended."""

    grace_period: Duration = Field(
        default="1d",
        description="How long Kubernetes waits for their jobs, which it ends then: as long as the longest job, or longer.",
    )


class Maintenance(Model):
    """Which marks on a Kubernetes Node mean that its workers get no more jobs."""

    cordon: bool = Field(default=True, description="Whether a cordon (unschedulable) does.")
    taints: list[Key] = Field(
        default_factory=lambda: ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"],
        max_length=32,
        description=(
            "Keys of taints that do. Workers tolerate their effect NoExecute, so that a job ends before its pod; "
            "a NoExecute taint of another key ends the pod at once."
        ),
    )
    conditions: list[Key] = Field(
        default_factory=list, max_length=32, description="Types of Node conditions that do while they are True."
    )
    annotations: list[Key] = Field(
        default_factory=lambda: ["slurm.soperator.io/drain"],
        max_length=32,
        description="Keys of Node annotations that do, unless their value is false.",
    )


class NodeFailureSpec(Model):
    """When a worker on a Kubernetes Node that no longer answers is replaced by one with another name."""

    replace_after: MaybeDuration = Field(
        default="5m",
        description="How long the Node must have been NotReady, and Slurm must say DOWN; empty means never.",
    )
    max_replaced: Share = Field(
        default="10%",
        description="How many workers may be replaced in this way at once: a number, or a percentage of replicas (at least 1); 0 means none.",
    )


UPDATE_STRATEGY = (
    Rule(
        cel=f"string(self.maxUnavailable).matches('{SOME}')",
        message="maxUnavailable must be a number of at least 1, or a percentage such as 25%: with none a rollout would never begin",
        holds=lambda rollout: re.search(SOME, rollout.max_unavailable) is not None,
        field="max_unavailable",
    ),
)

DRAIN = (
    Rule(
        cel="self.onTimeout == 'Wait' || self.?timeout.orValue('') != ''",
        message="onTimeout says what becomes of jobs after timeout: give timeout, for example 12h, or leave onTimeout at Wait",
        holds=lambda drain: drain.on_timeout == "Wait" or drain.timeout != "",
        field="on_timeout",
    ),
)

NODE_FAILURE = (
    Rule(
        cel=f"string(self.maxReplaced).matches('{SHARE}')",
        message="maxReplaced must be a number, or a percentage such as 10%: write it so, 0 for none",
        holds=lambda loss: re.search(SHARE, loss.max_replaced) is not None,
        field="max_replaced",
    ),
)
