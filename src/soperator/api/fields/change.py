"""The fields for changes of a NodeSet's nodes while jobs run on them: rollout, drain, maintenance of Nodes, failure of Nodes.

The defaults never end a job, because a lost job may be weeks of work. The only setting that may end one (`drain.onTimeout`) must be explicit, with
its timeout.
"""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from soperator.api.base import Model
from soperator.api.validation.cel import Rule
from soperator.api.validation.schedule import SCHEDULE

#: As Go and Kubernetes write a duration, without fractions.
DURATION = r"^([0-9]+[smh])+$"
SHARE = r"^([0-9]+|[0-9]{1,2}%|100%)$"
SOME = r"^([1-9][0-9]*|[1-9][0-9]?%|100%)$"
TAINT = r"^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(duration: str) -> float:
    """Return the length of a duration such as `90s` or `36h`; raises ValueError for another text."""
    if not re.fullmatch(DURATION, duration):
        raise ValueError(f"{duration}: write a duration such as 30s, 10m or 36h")
    return float(sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", duration)))


def share(of: int, text: str) -> int:
    """Return a number, or a percentage of `of` rounded down; at least 1, except for the number 0."""
    part = of * int(text[:-1]) // 100 if text.endswith("%") else int(text)
    return part if text in ("0", "0%") else max(1, part)


def _number_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Duration = Annotated[str, Field(pattern=DURATION, max_length=32)]
MaybeDuration = Annotated[str, Field(pattern=r"^([0-9]+[smh])*$", max_length=32)]
Share = Annotated[
    str,
    Field(pattern=SHARE, max_length=16, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Schedule = Annotated[str, Field(pattern=SCHEDULE, max_length=256)]
Key = Annotated[str, Field(pattern=TAINT, max_length=316)]


class Window(Model):
    """The times at which the replacement of a node may start."""

    schedule: Schedule = Field(
        description="Schedule on which the window opens, in UTC, as in a CronJob: minute, hour, day, month, weekday, or a macro such as @daily."
    )
    duration: Duration = Field(default="4h", description="How long the window stays open.")


class UpdateStrategy(Model):
    """The strategy that replaces pods of a former template."""

    type: Literal["RollingUpdate", "OnDelete"] = Field(
        default="RollingUpdate",
        description="RollingUpdate: the operator replaces outdated pods. OnDelete: a pod is replaced when a person deletes it.",
    )
    max_unavailable: Share = Field(
        default="1",
        description="Maximum number of nodes out of service at once: a number, or a percentage of replicas (rounded down, at least 1).",
    )
    busy: Literal["Drain", "Wait"] = Field(
        default="Drain",
        description=(
            "What happens to busy nodes after all idle nodes are replaced. Drain: a busy node gets no new job, and is "
            "replaced when its jobs have ended. Wait: it continues to get jobs, and is replaced when it becomes idle."
        ),
    )
    window: Window | None = Field(
        default=None, description="Window outside of which the rollout chooses no further node. Not set: always open."
    )
    progress_deadline_seconds: Annotated[int, Field(ge=1, le=86400)] = Field(
        default=600,
        description="Seconds after which a replaced node that is not in service stops the rollout. A node that cannot start stops it at once.",
    )


class DrainSpec(Model):
    """The time that a drain of the operator waits for the jobs of a node, and the consequence of its end."""

    timeout: MaybeDuration = Field(
        default="", description="How long jobs may run after the drain started. Empty: without a limit."
    )
    on_timeout: Literal["Wait", "Requeue", "Cancel"] = Field(
        default="Wait",
        description=(
            "Consequence for jobs that run longer. Wait: none. Requeue: batch jobs that allow it are requeued, others "
            "are cancelled. Cancel: all are cancelled."
        ),
    )
    warning_signal: Literal["", "CONT", "URG", "USR1", "USR2", "TERM", "INT", "HUP"] = Field(
        default="CONT",
        description=(
            "Signal that warns a job before its end. CONT and URG do not end a process that has no handler; the others do. Empty: no signal."
        ),
    )
    warning_period: Duration = Field(
        default="5m", description="Time between the warning and the end of a job. A job always gets this time."
    )


class Preemptible(Model):
    """The setting for nodes that Kubernetes may preempt for pods with a higher priority, after their jobs have ended."""

    grace_period: Duration = Field(
        default="24h",
        description="How long Kubernetes waits for the jobs before it ends them. Set at least the run time of the longest job.",
    )


class Maintenance(Model):
    """The taints, conditions and annotations of a Kubernetes Node that drain its workers."""

    cordon: bool = Field(default=True, description="Whether a cordon (unschedulable) drains the Slurm nodes of a Node.")
    taints: list[Key] = Field(
        default_factory=lambda: ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"],
        max_length=32,
        description=(
            "Keys of taints that drain. Workers tolerate the effect NoExecute of these keys, so that a job ends before "
            "its pod. A NoExecute taint of another key ends the pod at once."
        ),
    )
    conditions: list[Key] = Field(
        default_factory=list, max_length=32, description="Types of Node conditions that drain while they are True."
    )
    annotations: list[Key] = Field(
        default_factory=lambda: ["slurm.soperator.io/drain"],
        max_length=32,
        description="Keys of Node annotations that drain unless their value is false.",
    )


class NodeFailureSpec(Model):
    """The time after which a worker on a Kubernetes Node that does not answer is replaced by a worker with another name."""

    replace_after: MaybeDuration = Field(
        default="5m",
        description="How long the Node must be NotReady and its Slurm node DOWN before the worker is replaced. Empty: never.",
    )
    max_replaced: Share = Field(
        default="10%",
        description="Maximum number of workers replaced in this way at once: a number, or a percentage of replicas (at least 1). 0: none.",
    )


UPDATE_STRATEGY = (
    Rule(
        cel=f"string(self.maxUnavailable).matches('{SOME}')",
        message="maxUnavailable must be a number of at least 1, or a percentage such as 25%: with 0 a rollout would never start",
        holds=lambda rollout: re.search(SOME, rollout.max_unavailable) is not None,
        field="max_unavailable",
    ),
)

DRAIN = (
    Rule(
        cel="self.onTimeout == 'Wait' || self.?timeout.orValue('') != ''",
        message="onTimeout takes effect after timeout: set timeout, for example 12h, or leave onTimeout at Wait",
        holds=lambda drain: drain.on_timeout == "Wait" or drain.timeout != "",
        field="on_timeout",
    ),
)

NODE_FAILURE = (
    Rule(
        cel=f"string(self.maxReplaced).matches('{SHARE}')",
        message="maxReplaced must be a number, or a percentage such as 10%: set one of them, or 0 for none",
        holds=lambda loss: re.search(SHARE, loss.max_replaced) is not None,
        field="max_replaced",
    ),
)
