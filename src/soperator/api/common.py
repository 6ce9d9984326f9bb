"""The parts that SlurmCluster and NodeSet share, such as resources, scheduling and submounts, so that both have the same fields."""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import ABSOLUTE_PATH, DNS_LABEL, DNS_NAME, PLAIN, Model, Opaque, Quantity


class Resources(Model):
    """Requests and limits of a container, by resource name, as in a Kubernetes container."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict, description="Resources that the scheduler reserves for the container."
    )
    limits: dict[str, Quantity] = Field(
        default_factory=dict,
        description=("Maximum resources of the container. A worker's limit is the size of its Slurm node."),
    )


class Scheduling(Model):
    """Where pods of this role may run, as in Kubernetes' PodSpec."""

    node_selector: dict[str, str] = Field(default_factory=dict, description="Labels that a Node must have.")
    tolerations: list[Opaque] = Field(
        default_factory=list, max_length=64, description="Taints that these pods tolerate."
    )
    affinity: Opaque = Field(default_factory=dict, description="A Kubernetes affinity, passed through unchanged.")
    priority_class_name: str = Field(default="", max_length=253, description="Name of a PriorityClass.")


#: What the field podTemplate of each role of a SlurmCluster is.
POD_TEMPLATE = (
    "Escape hatch for settings without a field here: metadata and spec are merged over the generated pod "
    "template, containers by name (strategic merge). A change replaces the pods of this role."
)


class ClusterReference(Model):
    """A reference to the SlurmCluster of an object."""

    name: Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=30)] = Field(
        description="Name of the SlurmCluster in this namespace."
    )


class ClusterMember(Model):
    """A spec of an object that belongs to a SlurmCluster."""

    cluster_ref: ClusterReference = Field(description="Reference to the SlurmCluster of this object.")

    @property
    def cluster(self) -> str:
        """The name of the SlurmCluster."""
        return self.cluster_ref.name


class ClaimRef(Model):
    """A PersistentVolumeClaim: an existing one by name, or a new one by size and class."""

    name: str = Field(
        default="",
        max_length=253,
        description=(
            "Name of an existing PersistentVolumeClaim in this namespace. The operator uses it unchanged and never deletes it."
        ),
    )
    size: Quantity = Field(default="100Gi", description="Size of the claim that the operator creates if name is empty.")
    storage_class_name: str = Field(
        default="",
        max_length=253,
        description=("StorageClass of the claim that the operator creates. Empty: the default class of Kubernetes."),
    )


class StateClaim(ClaimRef):
    """The claim of the controller's state, which is small."""

    size: Quantity = Field(default="4Gi", description="Size of the claim that the operator creates if name is empty.")


class Tmpfs(Model):
    """Memory as a file system."""

    size: Quantity = Field(description="Maximum memory that the file system may use.")


class HostPath(Model):
    """A folder of the Node."""

    path: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        description=("Absolute path on the Node.")
    )


class Submount(Model):
    """Further storage at a path inside the jail. Exactly one of claimName, tmpfs, hostPath and volume is set."""

    path: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        description="Absolute path inside the jail, for example /home. The operator creates the folder in the jail if it is missing."
    )
    claim_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="", description="Name of a PersistentVolumeClaim in this namespace."
    )
    sub_path: Annotated[str, Field(pattern=PLAIN, max_length=1024)] = Field(
        default="", description="Folder inside the claim."
    )
    tmpfs: Tmpfs | None = Field(default=None, description="Memory of the node as a file system, private to each job.")
    host_path: HostPath | None = Field(default=None, description="A folder of the Node, for example local scratch.")
    volume: Opaque | None = Field(
        default=None, description="Any other Kubernetes volume source, passed through unchanged."
    )
    read_only: bool = Field(default=False, description="Whether the mount is read-only.")
    per_job: bool = Field(
        default=False,
        description=(
            "Whether each job on a worker gets its own folder at this path, created and deleted with the job. Login nodes do not mount it."
        ),
    )


class Image(Model):
    """The image of a container."""

    image: str = Field(
        default="", max_length=512, description=("Reference of the image. Empty: the operator's default.")
    )


PullPolicy = Literal["Always", "IfNotPresent", "Never"]
ClusterName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=30)]
NodeSetName = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=40)]
