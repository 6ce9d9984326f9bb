"""Hosts outside Kubernetes that are nodes or login hosts of a cluster."""

from typing import Annotated

from pydantic import Field

from soperator.api.base import Model


class ExternalNodes(Model):
    """Which hosts may join from outside Kubernetes; `soperator join` prints the commands for a host."""

    cidrs: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description=(
            "Networks of hosts outside Kubernetes that are nodes or login hosts of this cluster, such as 192.0.2.0/24: Slurm's daemons and srun are "
            "reached from there, as from the cluster's own pods. The hosts and the pods have to reach each other by their own addresses."
        ),
    )
