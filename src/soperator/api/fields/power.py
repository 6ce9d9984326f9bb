"""On-demand nodes: nodes of a NodeSet that Slurm knows and that have no pod until a job needs them."""

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

    min_nodes: Annotated[int, Field(ge=0, le=10000)] = Field(default=0, description="Nodes that are kept awake.")
    max_nodes: Annotated[int, Field(ge=1, le=10000)] = Field(
        description="Nodes that Slurm knows: those that sleep cost nothing, and a job that needs them wakes them."
    )
    suspend_time: Duration = Field(default="10m", description="How long a node without a job stays awake.")
    resume_timeout: Duration = Field(
        default="10m",
        description="How long a node may take to wake, including the time to find a machine for it. Then its jobs are requeued.",
    )
    suspend_timeout: Duration = Field(
        default="10s", description="How long a node that goes to sleep gets no job; its pod ends in that time."
    )
    retry_after: Duration = Field(
        default="5m",
        description="How long Slurm does not try a node again that did not wake, or for which there is no machine.",
    )


POWER_SAVING = (
    Rule(
        cel="self.minNodes <= self.maxNodes",
        message="minNodes is the number of nodes that are kept awake, of maxNodes at most: lower minNodes, or raise maxNodes",
        holds=lambda power: power.min_nodes <= power.max_nodes,
        field="min_nodes",
    ),
    Rule(
        cel="!self.resumeTimeout.matches('^0*[0-9]s$|^0*[12][0-9]s$')",
        message=f"resumeTimeout must be at least {LEAST_RESUME:.0f}s, for a pod has to start in it: give more",
        holds=lambda power: seconds(power.resume_timeout) >= LEAST_RESUME,
        field="resume_timeout",
    ),
)
