"""The kind NodeSet: a number of equal worker nodes of one SlurmCluster. It is a separate kind, so that several types of machines can scale on
their own.

Pod `<cluster>-<nodeset>-<n>` is Slurm node `<nodeset>-<n>`. The default is a node without a GPU: GPUs are declared, never assumed.
"""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import ABSOLUTE_PATH, SLURM_NAME, Model, Opaque, Quantity
from soperator.api.common import ClusterMember, HostPath, Resources, Scheduling, Submount
from soperator.api.fields.change import (
    DrainSpec,
    Maintenance,
    NodeFailureSpec,
    Preemptible,
    UpdateStrategy,
)
from soperator.api.fields.power import PowerSaving
from soperator.api.fields.topology import TopologyLabels
from soperator.api.validation.cel import Rule, cel_text


class Cdi(Model):
    """A specification of the Container Device Interface (CDI) on a Node, as nvidia-ctk and others write it."""

    spec: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        default="/var/run/cdi", description="Path on the Node of the specification, or of a folder with several."
    )
    root: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        default="/usr", description="Folder of the Node that contains the files that the specification names."
    )


class Driver(Model):
    """The source of the GPU driver's libraries and tools; without one, the files that the container runtime mounts into the pod."""

    host_path: HostPath | None = Field(
        default=None,
        description=(
            "Folder of the Node: one with lib and bin, or the root of a driver container such as /run/nvidia/driver."
        ),
    )
    volume: Opaque | None = Field(
        default=None, description="A Kubernetes volume source with the driver, for example a claim or an image."
    )
    cdi: Cdi | None = Field(default=None, description="A CDI specification on the Node that names the driver's files.")

    @property
    def is_given(self) -> bool:
        """Whether the spec names a source."""
        return self.host_path is not None or self.volume is not None or self.cdi is not None


class Gpu(Model):
    """GPUs of each node."""

    vendor: Literal["None", "nvidia", "amd"] = Field(
        default="None", description="Vendor of the GPUs. None: a node without GPUs."
    )
    count: Annotated[int, Field(ge=0, le=64)] = Field(default=0, description="GPUs per node.")
    type: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$", max_length=64)] = Field(
        default="", description="Type in GRES, for example h100, so that users can request gpu:h100:1."
    )
    shards: Annotated[int, Field(ge=0, le=4096)] = Field(
        default=0,
        description=(
            "Shards of all GPUs of a node together, the same number for each GPU. Jobs that request shard:1 share a GPU "
            "without isolation. Slurm allocates a GPU either whole or in shards."
        ),
    )
    resource_name: str = Field(
        default="",
        max_length=253,
        description=("Kubernetes resource of the GPUs. Empty: nvidia.com/gpu or amd.com/gpu, by vendor."),
    )
    driver: Driver = Field(
        default_factory=Driver,
        description=(
            "Source of the GPU driver's libraries and tools, which jobs on these nodes find at /opt/soperator/driver. The jail has none."
        ),
    )


class Rdma(Model):
    """Remote direct memory access: InfiniBand or RoCE."""

    resources: dict[str, Quantity] = Field(
        default_factory=dict, description=("Device resources per node, for example rdma/hca: 1.")
    )
    infiniband: bool = Field(
        default=False, description=("Whether the pod and the jail get /dev/infiniband of the Node.")
    )


class NodeSetSpec(ClusterMember):
    """A number of equal worker nodes."""

    replicas: Annotated[int, Field(ge=0, le=10000)] = Field(
        default=1,
        description="Number of nodes. With powerSaving it has no effect, because Slurm's queue determines the number.",
    )
    power_saving: PowerSaving | None = Field(
        default=None,
        description="Nodes that sleep until a job needs them. Not set: all nodes are always awake.",
    )
    image: str = Field(default="", max_length=512, description=("Image of slurmd. Empty: images.slurm of the cluster."))
    resources: Resources = Field(
        default_factory=Resources,
        description=(
            "Requests and limits of a node. The limit, or without one the request, is the size of the Slurm node."
        ),
    )
    gpu: Gpu = Field(default_factory=Gpu, description="GPUs of each node; none by default.")
    rdma: Rdma = Field(default_factory=Rdma, description="InfiniBand or RoCE devices of each node.")
    features: list[Annotated[str, Field(pattern=SLURM_NAME, max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description=(
            "Slurm features, for --constraint. The NodeSet's name is always one. Running nodes get them without a new pod."
        ),
    )
    weight: Annotated[int, Field(ge=1, le=4294967280)] = Field(
        default=1,
        description=(
            "Slurm weight. Slurm allocates nodes with a lower weight first. Running nodes get it without a new pod."
        ),
    )
    extra_conf: Annotated[str, Field(pattern=r"^[^\n\r\"'\\$`]*$", max_length=2048)] = Field(
        default="", description="Further settings for slurmd --conf, for example MemSpecLimit=512."
    )
    shm_size: Quantity = Field(default="64Mi", description="Size of each job's private /dev/shm.")
    tmp_size: Quantity | None = Field(
        default=None,
        description=(
            "Maximum size of /tmp for all jobs of a node together, without container images. The kubelet evicts a pod "
            "that uses more, which ends all jobs of the node. Empty: the Node's disk is the limit. A claim at /tmp "
            "refuses the write instead."
        ),
    )
    ssh: bool = Field(
        default=True,
        description="Whether a user with a job on a node may log in by SSH, from login nodes and other nodes, into that job.",
    )
    submounts: list[Submount] = Field(
        default_factory=list, max_length=64, description="Other storage at paths inside the jail, on these nodes only."
    )
    volumes: list[Opaque] = Field(
        default_factory=list, max_length=64, description=("Further Kubernetes volumes of the pod.")
    )
    volume_mounts: list[Opaque] = Field(
        default_factory=list,
        max_length=64,
        description=("Where those volumes are mounted in slurmd's container (not in the jail)."),
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where these nodes may run.")
    topology_labels: TopologyLabels = Field(
        default_factory=dict,
        description=(
            "Labels of the Kubernetes Nodes for these nodes, by level of the cluster's topology. The nodes run only on "
            "Nodes with these labels, and Slurm knows their location before they run. For a level that is left out, the "
            "operator reads the label from the Node."
        ),
    )
    update_strategy: UpdateStrategy = Field(
        default_factory=UpdateStrategy, description="How nodes are replaced after a change of this spec."
    )
    drain: DrainSpec = Field(
        default_factory=DrainSpec,
        description="How long jobs may delay a scale-in, a rollout, a maintenance or a deletion.",
    )
    preemptible: Preemptible | None = Field(
        default=None,
        description=(
            "Whether pods with a higher priority than scheduling.priorityClassName preempt these nodes only after a "
            "drain. Not set: a node that Kubernetes preempts loses its jobs."
        ),
    )
    maintenance: Maintenance = Field(
        default_factory=Maintenance,
        description="Taints, conditions and annotations of a Kubernetes Node that drain its Slurm nodes.",
    )
    node_failure: NodeFailureSpec = Field(
        default_factory=NodeFailureSpec,
        description="When workers on a Kubernetes Node that does not answer are replaced.",
    )
    pod_template: Opaque = Field(
        default_factory=dict,
        description=(
            "Escape hatch: metadata and spec are merged over the generated pod, containers by name (strategic merge)."
        ),
    )

    @property
    def size(self) -> int:
        """The maximum number of nodes."""
        return self.power_saving.max_nodes if self.power_saving else self.replicas


GPU = (
    Rule(
        cel="(self.vendor == 'None') == (self.count == 0)",
        message=(
            "gpu.vendor and gpu.count need each other: set a vendor (nvidia or amd) and a count of at least 1, or neither"
        ),
        holds=lambda gpu: (gpu.vendor == "None") == (gpu.count == 0),
        field="count",
    ),
    Rule(
        cel=f"self.vendor != 'None' || ({cel_text('type')} == '' && {cel_text('resourceName')} == '')",
        message="gpu.type and gpu.resourceName describe GPUs: also set gpu.vendor and gpu.count, or remove them",
        holds=lambda gpu: gpu.vendor != "None" or not (gpu.type or gpu.resource_name),
        field="vendor",
    ),
    Rule(
        cel="self.shards == 0 || (self.count > 0 && self.shards % self.count == 0)",
        message="each GPU has the same number of shards: set a multiple of gpu.count",
        holds=lambda gpu: gpu.shards == 0 or (gpu.count > 0 and gpu.shards % gpu.count == 0),
        field="shards",
    ),
    Rule(
        cel="self.count <= 1 || !has(self.resourceName) || !self.resourceName.contains('/mig-')",
        message="Slurm could not distinguish the parts of a GPU in one pod: set count 1 and more nodes, which share a machine",
        holds=lambda gpu: gpu.count <= 1 or "/mig-" not in gpu.resource_name,
        field="count",
    ),
)

DRIVER = (
    Rule(
        cel="[has(self.hostPath), has(self.volume), has(self.cdi)].filter(given, given).size() <= 1",
        message="a driver has exactly one source, hostPath, volume or cdi: keep one and remove the others",
        holds=lambda driver: sum(each is not None for each in (driver.host_path, driver.volume, driver.cdi)) <= 1,
    ),
)
