"""Pieces that the SlurmCluster and the NodeSet share: resources, scheduling, submounts."""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import ABSOLUTE_PATH, DNS_LABEL, DNS_NAME, PLAIN, Model, Opaque, Quantity


class Resources(Model):
    """Requests and limits of a container, by resource name, as in a Kubernetes container."""

    requests: dict[str, Quantity] = Field(default_factory=dict, description="What the scheduler sets aside.")
    limits: dict[str, Quantity] = Field(
        default_factory=dict,
        description=("What the container may not exceed. A worker's limit is the size of its Slurm node."),
    )


class Scheduling(Model):
    """Where pods of this role may run, as in Kubernetes' PodSpec."""

    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels that a Node must have.")
    tolerations: list[Opaque] = Field(
        default_factory=list, max_length=64, description="Taints that these pods tolerate."
    )
    affinity: Opaque = Field(default_factory=dict, description="A Kubernetes affinity, handed through.")
    priority_class_name: str = Field(default="", max_length=253, description="Name of a PriorityClass.")


#: What the field podTemplate of each role of a SlurmCluster is.
POD_TEMPLATE = (
    "Escape hatch for what has no field here: metadata and spec that are merged over the generated pod template, containers by name (strategic "
    "merge). A change replaces the pods of this role."
)


class ClusterReference(Model):
    """Which SlurmCluster an object belongs to."""

    name: Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=30)] = Field(
        description="Name of the SlurmCluster in this namespace."
    )


class ClusterMember(Model):
    """The spec of an object that belongs to a SlurmCluster."""

    cluster_ref: ClusterReference = Field(description="The SlurmCluster that it belongs to.")

    @property
    def cluster(self) -> str:
        """Name of that SlurmCluster."""
        return self.cluster_ref.name


class ClaimRef(Model):
    """An existing claim, named, or a new one, described by size and class."""

    name: str = Field(
        default="",
        max_length=253,
        description=(
            "Name of an existing PersistentVolumeClaim in this namespace. It is used as it is and never deleted."
        ),
    )
    size: Quantity = Field(default="100Gi", description="Size of the claim that is created when no name is given.")
    storage_class_name: str = Field(
        default="",
        max_length=253,
        description=("Class of the claim that is created; empty means the cluster's default class."),
    )


class StateClaim(ClaimRef):
    """The claim of the controller's state, which is small."""

    size: Quantity = Field(default="4Gi", description="Size of the claim that is created when no name is given.")


class Tmpfs(Model):
    """Memory as a file system."""

    size: Quantity = Field(description="Upper bound of the memory it may take.")


class HostPath(Model):
    """A folder of the Node."""

    path: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        description=("Absolute path on the Node.")
    )


class Submount(Model):
    """Another storage at a path inside the jail. Exactly one of claimName, tmpfs, hostPath and volume is set."""

    path: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        description="Absolute path inside the jail, for example /home. Its folder is created in the jail where it is missing."
    )
    claim_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="", description="Name of a PersistentVolumeClaim in this namespace."
    )
    sub_path: Annotated[str, Field(pattern=PLAIN, max_length=1024)] = Field(
        default="", description="Folder inside the claim."
    )
    tmpfs: Tmpfs | None = Field(default=None, description="Memory of the node, private to each job.")
    host_path: HostPath | None = Field(default=None, description="A folder of the Node, for local scratch.")
    volume: Opaque | None = Field(default=None, description="Any other Kubernetes volume source, handed through.")
    read_only: bool = Field(default=False, description="Whether users may only read it.")
    per_job: bool = Field(
        default=False,
        description=(
            "Whether each job on a worker sees its own folder there, created and removed with the job; login nodes leave it out."
        ),
    )


class Image(Model):
    """Which image a container runs."""

    image: str = Field(
        default="", max_length=512, description=("Reference of the image; empty means the operator's default.")
    )


PullPolicy = Literal["Always", "IfNotPresent", "Never"]
ClusterName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=30)]
NodeSetName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=40)]
