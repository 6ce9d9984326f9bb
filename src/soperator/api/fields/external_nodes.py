"""The fields for hosts outside Kubernetes that are nodes or login hosts of a cluster. They have no pods, so only their networks are configured."""

from typing import Annotated

from pydantic import Field

from soperator.api.base import Model


class ExternalNodes(Model):
    """The hosts that may join from outside Kubernetes; `soperator join` prints the commands for a host."""

    cidrs: list[Annotated[str, Field(max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description=(
            "Networks of hosts outside Kubernetes that are nodes or login hosts of this cluster, such as 192.0.2.0/24. "
            "They may connect to Slurm's daemons and to srun, as the cluster's own pods may. The hosts and the pods must "
            "reach each other by their own addresses."
        ),
    )
