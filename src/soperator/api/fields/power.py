"""The fields for on-demand nodes: nodes of a NodeSet that Slurm knows and that have no pod until a job needs them, so that idle nodes cost no
machine.
"""

from typing import Annotated

from pydantic import Field

from soperator.api.base import Model
from soperator.api.fields.change import Duration, seconds
from soperator.api.validation.cel import Rule

#: slurm.conf(5) stores ResumeTimeout in 16 bits; ours is in it with a minute added.
LONGEST_RESUME = 65000.0
LEAST_RESUME = 30.0


class PowerSaving(Model):
    """Nodes that are powered down until a job needs them."""

    min_nodes: Annotated[int, Field(ge=0, le=10000)] = Field(default=0, description="Minimum number of awake nodes.")
    max_nodes: Annotated[int, Field(ge=1, le=10000)] = Field(
        description="Number of nodes that Slurm knows. A sleeping node has no pod; a job that needs it wakes it."
    )
    suspend_time: Duration = Field(default="10m", description="How long a node without a job stays awake.")
    resume_timeout: Duration = Field(
        default="10m",
        description="Timeout of a waking node, including the time to find a machine. Then its jobs are requeued.",
    )
    suspend_timeout: Duration = Field(
        default="10s", description="How long a node that powers down gets no job. Its pod ends in that time."
    )
    retry_after: Duration = Field(
        default="5m",
        description="How long Slurm waits before it tries again a node that did not wake or has no machine.",
    )


POWER_SAVING = (
    Rule(
        cel="self.minNodes <= self.maxNodes",
        message="minNodes must not be larger than maxNodes: lower minNodes, or raise maxNodes",
        holds=lambda power: power.min_nodes <= power.max_nodes,
        field="min_nodes",
    ),
    Rule(
        cel="!self.resumeTimeout.matches('^0*[0-9]s$|^0*[12][0-9]s$')",
        message=f"resumeTimeout must be at least {LEAST_RESUME:.0f}s, because a pod must start in that time: raise it",
        holds=lambda power: seconds(power.resume_timeout) >= LEAST_RESUME,
        field="resume_timeout",
    ),
)
