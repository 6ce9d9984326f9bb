"""The fields for metrics in the spec of a SlurmCluster. Both sources are off by default, because they cost memory and requests."""

from pydantic import Field

from soperator.api.base import Model, Opaque
from soperator.api.common import POD_TEMPLATE, Resources, Scheduling


class ExporterSpec(Model):
    """The exporter: Prometheus metrics of Slurm's nodes, jobs and scheduler."""

    nodes: bool = Field(
        default=True, description="Whether each Slurm node has its own series, in addition to the sums over all nodes."
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of the exporter.")
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where the exporter may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class MetricsSpec(Model):
    """The metrics of the cluster for Prometheus."""

    exporter: ExporterSpec | None = Field(
        default=None,
        description="The exporter of Slurm's nodes, jobs and scheduler; it runs if this is set. {}: all defaults. It queries "
        "slurmrestd as a user without rights, or as SlurmUser if config.extraLines.slurm sets PrivateData.",
    )
    jobs: bool = Field(
        default=False,
        description="Whether each worker exposes the CPU, memory and GPUs that its jobs use. It needs no exporter. A change rolls the workers.",
    )
    allow_from: list[Opaque] = Field(
        default_factory=list,
        max_length=16,
        description="Clients that may scrape, as peers of a Kubernetes NetworkPolicy. Empty: every pod. The cluster's own pods always may.",
    )
