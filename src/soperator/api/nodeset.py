"""The kind NodeSet: a number of equal worker nodes of one SlurmCluster.

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
    """A specification of the Container Device Interface, as nvidia-ctk and others write it on a Node."""

    spec: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        default="/var/run/cdi", description="The file, or the folder whose files are all taken, on the Node."
    )
    root: Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)] = Field(
        default="/usr", description="Folder of the Node that holds what the specification names."
    )


class Driver(Model):
    """Where the GPU driver's libraries and tools come from; nothing given means what the container runtime puts into the pod."""

    host_path: HostPath | None = Field(
        default=None,
        description=(
            "A folder of the Node: one with lib and bin made for it, or the root of a driver container such as /run/nvidia/driver."
        ),
    )
    volume: Opaque | None = Field(
        default=None, description="The same in any Kubernetes volume source, for example a claim or an image."
    )
    cdi: Cdi | None = Field(default=None, description="A CDI specification on the Node that names the files.")

    @property
    def is_given(self) -> bool:
        """Whether a source is named."""
        return self.host_path is not None or self.volume is not None or self.cdi is not None


class Gpu(Model):
    """GPUs of each node."""

    vendor: Literal["none", "nvidia", "amd"] = Field(default="none", description="Whose GPUs; none is a CPU-only node.")
    count: Annotated[int, Field(ge=0, le=64)] = Field(default=0, description="GPUs per node.")
    type: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*$", max_length=64)] = Field(
        default="", description="Type in GRES, for example h100, so that users can ask for gpu:h100:1."
    )
    shards: Annotated[int, Field(ge=0, le=4096)] = Field(
        default=0,
        description=(
            "Shards of all GPUs of a node together, the same number of each. Jobs that ask for shard:1 share a GPU, and nothing but their number "
            "keeps them apart; a GPU is given out whole or in shards."
        ),
    )
    resource_name: str = Field(
        default="",
        max_length=253,
        description=("Kubernetes resource; empty means the vendor's, nvidia.com/gpu or amd.com/gpu."),
    )
    driver: Driver = Field(
        default_factory=Driver,
        description=(
            "Libraries and tools of the GPU driver, which jobs on these nodes find at /opt/soperator/driver. The jail holds none."
        ),
    )


class Rdma(Model):
    """Remote direct memory access: InfiniBand or RoCE."""

    resources: dict[str, Quantity] = Field(
        default_factory=dict, description=("Device resources per node, for example rdma/hca: 1.")
    )
    infiniband: bool = Field(
        default=False, description=("Whether /dev/infiniband of the Node is given to the pod and to the jail.")
    )


class NodeSetSpec(ClusterMember):
    """A number of equal worker nodes."""

    replicas: Annotated[int, Field(ge=0, le=10000)] = Field(
        default=1,
        description="Number of nodes; with powerSaving Slurm's queue determines the number, and this has no effect.",
    )
    power_saving: PowerSaving | None = Field(
        default=None,
        description="Nodes that sleep until a job needs them; without it all nodes are there all the time.",
    )
    image: str = Field(
        default="", max_length=512, description=("Image of slurmd; empty means the cluster's images.slurm.")
    )
    resources: Resources = Field(
        default_factory=Resources,
        description=("Requests and limits of a node. Slurm sees the limit, or else the request, as the node's size."),
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
            "Slurm weight: nodes of lower weight are given out first. Running nodes get it without a new pod."
        ),
    )
    extra_conf: Annotated[str, Field(pattern=r"^[^\n\r\"'\\$`]*$", max_length=2048)] = Field(
        default="", description="Further settings for slurmd --conf, for example MemSpecLimit=512."
    )
    shm_size: Quantity = Field(default="64Mi", description="Size of each job's private /dev/shm.")
    tmp_size: Quantity | None = Field(
        default=None,
        description=(
            "How much the jobs of a node may have in /tmp together, beside its images of containers. The kubelet evicts a pod that holds more, with "
            "all jobs of the node; without a size the Node's disk is the bound. A claim at /tmp refuses the write instead."
        ),
    )
    ssh: bool = Field(
        default=True,
        description="Whether a user who has a job on a node may log in there by SSH, into that job, from login and other nodes.",
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
            "Labels, levels of the cluster's topology, that the Nodes of these nodes have: nodes run nowhere else, and Slurm knows their place "
            "before they run. Labels that are left out are read from the Nodes."
        ),
    )
    update_strategy: UpdateStrategy = Field(
        default_factory=UpdateStrategy, description="How nodes are replaced when what this spec says of them changes."
    )
    drain: DrainSpec = Field(
        default_factory=DrainSpec,
        description="How long jobs may hold up a scale-in, a rollout, a maintenance or a deletion.",
    )
    preemptible: Preemptible | None = Field(
        default=None,
        description=(
            "Whether these nodes give way to pods of a higher priority than scheduling.priorityClassName: they are drained first. Without it a node "
            "that Kubernetes takes away loses its jobs."
        ),
    )
    maintenance: Maintenance = Field(
        default_factory=Maintenance, description="Which marks on a Kubernetes Node drain its Slurm nodes."
    )
    node_failure: NodeFailureSpec = Field(
        default_factory=NodeFailureSpec,
        description="When nodes on a Kubernetes Node that no longer answers are replaced.",
    )
    pod_template: Opaque = Field(
        default_factory=dict,
        description=(
            "Escape hatch: metadata and spec that are merged over the generated pod, containers by name "
            "(strategic merge)."
        ),
    )

    @property
    def size(self) -> int:
        """How many nodes there may be at most."""
        return self.power_saving.max_nodes if self.power_saving else self.replicas


GPU = (
    Rule(
        cel="(self.vendor == 'none') == (self.count == 0)",
        message=(
            "gpu.vendor and gpu.count belong together: give a vendor (nvidia or amd) and a count of at "
            "least 1, or neither"
        ),
        holds=lambda gpu: (gpu.vendor == "none") == (gpu.count == 0),
        field="count",
    ),
    Rule(
        cel=f"self.vendor != 'none' || ({cel_text('type')} == '' && {cel_text('resourceName')} == '')",
        message="gpu.type and gpu.resourceName describe GPUs: give gpu.vendor and gpu.count too, or remove them",
        holds=lambda gpu: gpu.vendor != "none" or not (gpu.type or gpu.resource_name),
        field="vendor",
    ),
    Rule(
        cel="self.shards == 0 || (self.count > 0 && self.shards % self.count == 0)",
        message="each GPU has the same number of shards: give a multiple of gpu.count",
        holds=lambda gpu: gpu.shards == 0 or (gpu.count > 0 and gpu.shards % gpu.count == 0),
        field="shards",
    ),
    Rule(
        cel="self.count <= 1 || !has(self.resourceName) || !self.resourceName.contains('/mig-')",
        message="Slurm could not tell the parts of a GPU apart in one pod: give count 1 and more nodes, which share a machine",
        holds=lambda gpu: gpu.count <= 1 or "/mig-" not in gpu.resource_name,
        field="count",
    ),
)

DRIVER = (
    Rule(
        cel="[has(self.hostPath), has(self.volume), has(self.cdi)].filter(given, given).size() <= 1",
        message="a driver has one source, hostPath, volume or cdi: keep one and remove the others",
        holds=lambda driver: sum(each is not None for each in (driver.host_path, driver.volume, driver.cdi)) <= 1,
    ),
)
