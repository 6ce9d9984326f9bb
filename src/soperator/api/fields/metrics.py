"""Metrics, as the spec of a SlurmCluster has them."""

from pydantic import Field

from soperator.api.base import Model, Opaque
from soperator.api.common import POD_TEMPLATE, Resources, Scheduling


class ExporterSpec(Model):
    """The exporter: Prometheus metrics of Slurm's nodes, jobs and scheduler."""

    nodes: bool = Field(
        default=True, description="Whether each Slurm node has series of its own, beside what is summed over all."
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of the exporter.")
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where the exporter may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class MetricsSpec(Model):
    """The metrics of the cluster for Prometheus."""

    exporter: ExporterSpec | None = Field(
        default=None,
        description="Series of Slurm's nodes, jobs and scheduler, where this is there; {} takes all defaults. It asks slurmrestd as a user without "
        "rights, or as SlurmUser where config.extraLines.slurm has PrivateData.",
    )
    jobs: bool = Field(
        default=False,
        description="Whether each worker tells what its jobs use: CPU, memory and which GPUs. It needs no exporter. To change it rolls the workers.",
    )
    allow_from: list[Opaque] = Field(
        default_factory=list,
        max_length=16,
        description="Who may scrape, as peers of a Kubernetes NetworkPolicy; empty means every pod. The cluster's own pods always may.",
    )
