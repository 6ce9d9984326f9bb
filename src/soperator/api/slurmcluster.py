"""The kind SlurmCluster: one Slurm cluster, without its workers.

It describes what all nodes share: images, authentication, the jail, the controller, login, REST, partitions and the lines of slurm.conf that the
operator does not own. NodeSets refer to it and describe the machines, so that their number can change without a change of the cluster.
"""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import ABSOLUTE_PATH, SLURM_NAME, Model, Opaque, Quantity
from soperator.api.common import (
    POD_TEMPLATE,
    ClaimRef,
    NodeSetName,
    PullPolicy,
    Resources,
    Scheduling,
    StateClaim,
    Submount,
)
from soperator.api.fields.accounting import Accounting
from soperator.api.fields.config import Config
from soperator.api.fields.health import HealthSpec
from soperator.api.fields.metrics import MetricsSpec
from soperator.api.fields.rest import RestSpec
from soperator.api.fields.service import LoginService
from soperator.api.fields.topology import Topology
from soperator.api.fields.upgrade import Upgrade


class Images(Model):
    """Images of the cluster's pods; an empty field means the operator's default at the time when the cluster was created or last upgraded."""

    slurm: str = Field(
        default="", max_length=512, description="Image of slurmctld, slurmd, slurmrestd, sackd and slurmdbd."
    )
    login: str = Field(default="", max_length=512, description="Image of sshd, which runs inside the jail.")
    munge: str = Field(default="", max_length=512, description="Image of munged, for auth.type munge.")
    agents: str = Field(
        default="",
        max_length=512,
        description=(
            "Image of the programs that check the jail, keep the users known to slurmctld, and export metrics."
        ),
    )
    sssd: str = Field(default="", max_length=512, description="SSSD; used with sssd.configSecretName only.")
    mariadb: str = Field(
        default="",
        max_length=512,
        description="Image of MariaDB, for the operator's own accounting database.",
    )
    proxy: str = Field(
        default="",
        max_length=512,
        description="Image of nginx, in front of the operator's slurmrestd and the slurmrestd of users.",
    )
    pull_policy: PullPolicy = Field(default="IfNotPresent", description="Pull policy of the images.")
    pull_secrets: list[str] = Field(
        default_factory=list, max_length=8, description=("Names of Secrets with registry credentials.")
    )


class Sssd(Model):
    """Users and groups of a directory service (LDAP, Active Directory, FreeIPA) in addition to those of the jail, through SSSD."""

    config_secret_name: str = Field(
        default="",
        max_length=253,
        description=(
            "Name of a Secret with sssd.conf and the files that it names, such as certificates; they appear in "
            "/etc/soperator/sssd. Empty: only the users of the jail exist."
        ),
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of SSSD in each pod.")


class Auth(Model):
    """Authentication between Slurm's daemons. REST always uses JSON web tokens."""

    type: Literal["slurm", "munge"] = Field(
        default="slurm",
        description=("slurm: auth/slurm with one key, and sackd on login nodes. munge: a munged beside each daemon."),
    )
    rotate_request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="",
        description=(
            "A request to replace the keys of Slurm or munge and of REST while jobs run. Any new value is one request, "
            "for example the name of the month. It is carried out once; a former value is not. The SSH host keys stay."
        ),
    )
    keep_keys: bool = Field(
        default=False,
        description=(
            "Whether the Secrets with keys stay when the cluster is deleted, so that a new cluster of the same name uses them."
        ),
    )


class Refill(Model):
    """A request to copy the jail image into a filled jail. It is carried out once."""

    request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="",
        description=(
            "Any new value is one request, for example today's date. It is carried out once; a former value is not."
        ),
    )
    mode: Literal["Missing", "Overwrite"] = Field(
        default="Missing",
        description=(
            "Missing: restore the files of the image that the jail lacks, while everything runs. Overwrite: drain all "
            "workers, wait until no job runs, close login, replace the whole root with the image, and resume."
        ),
    )
    keep: list[Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)]] = Field(
        default_factory=lambda: ["/home"],
        max_length=64,
        description=(
            "Paths of the jail that an overwrite keeps, in addition to the users and groups that people created. The "
            "rest of the former root stays on the claim as root.previous until the next overwrite."
        ),
    )


class Jail(Model):
    """The shared root file system of all login and worker nodes."""

    claim: ClaimRef = Field(
        default_factory=ClaimRef,
        description=("The ReadWriteMany claim of the jail. The operator never deletes it."),
    )
    per_node: bool = Field(
        default=False,
        description=(
            "Whether each login and worker node has its own root instead of a shared one: a claim of this size and class "
            "for each pod, filled from the image when the pod is created, and deleted with the pod. Files that must "
            "survive then belong on submounts, such as /home."
        ),
    )
    image: str = Field(
        default="",
        max_length=512,
        description=("Image whose file system fills the jail. Empty: the operator's default."),
    )
    populate: Literal["Once", "Never"] = Field(
        default="Once",
        description=(
            "Once: fill an empty claim, and never change a filled one. Never: the claim already has a root file system."
        ),
    )
    refill: Refill = Field(
        default_factory=Refill, description="A request to repair or to replace the jail from its image."
    )
    submounts: list[Submount] = Field(
        default_factory=list, max_length=64, description=("Other storage at paths inside the jail, on every node.")
    )
    pod_template: Opaque = Field(
        default_factory=dict,
        description="Escape hatch, as of a role, for the Jobs that fill the jail and create mount points in it.",
    )

    @property
    def has_job(self) -> bool:
        """Whether a Job of the operator fills the jail: all nodes share it, and the operator may fill it."""
        return self.populate == "Once" and not self.per_node


#: slurmctlds of a cluster, its backups among them.
MOST_CONTROLLERS = 4


class ControllerSpec(Model):
    """slurmctld."""

    replicas: Annotated[int, Field(ge=1, le=MOST_CONTROLLERS)] = Field(
        default=1,
        description=(
            "Number of slurmctld pods. The first leads, the others are its backups in order. More than one needs a "
            "ReadWriteMany claim for the state."
        ),
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of slurmctld.")
    state: StateClaim = Field(
        default_factory=StateClaim,
        description=(
            "The claim with Slurm's state: running and pending jobs. With the cluster, the operator deletes the claim if it created it."
        ),
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where slurmctld may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class Login(Model):
    """The login nodes: sshd in the jail."""

    replicas: Annotated[int, Field(ge=0, le=100)] = Field(default=1, description="Number of login pods.")
    service: LoginService = Field(default_factory=LoginService, description="How users reach them.")
    root_authorized_keys: list[Annotated[str, Field(max_length=16384)]] = Field(
        default_factory=list,
        max_length=256,
        description=(
            "SSH public keys that may log in as root of the jail, for the administrator who creates the other users."
        ),
    )
    password_authentication: bool = Field(
        default=False,
        description="Whether users may also log in with a password of the jail or of the directory. Root never may.",
    )
    resources: Resources = Field(
        default_factory=Resources,
        description="Requests and limits of a login pod. It requests 100m of CPU unless this sets CPU.",
    )
    tmp_size: Quantity | None = Field(
        default=None,
        description=(
            "Maximum size of /tmp of a login pod for all users together. The kubelet evicts a pod that uses more, which "
            "ends its sessions. Empty: the Node's disk is the limit. A claim at /tmp refuses the write instead."
        ),
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where login pods may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class Partition(Model):
    """A Slurm partition over NodeSets."""

    name: Annotated[str, Field(pattern=SLURM_NAME, max_length=64)] = Field(description="Name of the partition.")
    node_sets: list[NodeSetName] = Field(
        default_factory=list,
        max_length=256,
        description=(
            "NodeSets whose nodes belong to the partition. Empty, without features: all NodeSets of the cluster."
        ),
    )
    features: list[Annotated[str, Field(pattern=SLURM_NAME, max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description="Features of NodeSets. Nodes with one of them also belong to the partition, whatever their NodeSet.",
    )
    default: bool = Field(default=False, description="Whether jobs that name no partition go to this one.")
    hidden: bool = Field(default=False, description="Whether sinfo and squeue hide the partition.")
    options: dict[str, Annotated[str, Field(pattern=r"^[^\n\r]*$", max_length=1024)]] = Field(
        default_factory=dict,
        max_length=64,
        description=("Further options of the partition by their names in slurm.conf, for example MaxTime."),
    )


class JobsSpec(Model):
    """How jobs are limited to their allocated CPUs and memory."""

    limits: Literal["Sampled", "Cgroup", "None"] = Field(
        default="Sampled",
        description=(
            "Sampled: Slurm allocates memory like CPUs, and ends a step that samples show above its memory. Cgroup: the "
            "kernel limits each job to its CPUs and its memory; the Nodes' container runtime must give pods a writable "
            "cgroup v2. None: Slurm allocates CPUs but no memory, and nothing limits a job to either."
        ),
    )
    bind_cpus: bool = Field(
        default=False,
        description=(
            "Whether tasks are bound to the CPUs that Slurm allocated. It requires that each worker has exclusive CPUs, "
            "as a whole Node or by the kubelet's static CPU manager; otherwise all workers bind their tasks to the same "
            "first CPUs."
        ),
    )


class Security(Model):
    """How login and worker pods are isolated from their Nodes."""

    user_namespace: bool = Field(
        default=True,
        description=(
            "Whether pods run in a user namespace, so that root in the jail is nobody on the Node. Set false if the "
            "jail's file system does not support idmapped mounts."
        ),
    )
    id_count: Annotated[int, Field(ge=65536, le=4294967294)] = Field(
        default=65536,
        description=(
            "Upper limit of the ids of users and groups. More than 65536 needs a kubelet with userNamespaces.idsPerPod "
            "of at least this; on any other Node the pod does not start and reports the cause."
        ),
    )


class JobContainers(Model):
    """The defaults of --container-image in srun, sbatch and salloc."""

    enabled: bool = Field(
        default=True,
        description=(
            "Whether srun, sbatch and salloc have the options. Set false if config.extraLines.plugstack loads Pyxis, "
            "because two plugins cannot have the same options."
        ),
    )
    scope: Literal["Job", "Global"] = Field(
        default="Job",
        description="How long a named container stays on its node: until the end of its job, or until the node's disk is replaced.",
    )
    entrypoint: bool = Field(default=False, description="Whether the entry point of the image runs.")
    remap_root: bool = Field(default=False, description="Whether the user appears as root in the container.")
    mount_home: bool = Field(default=False, description="Whether the user's home is mounted in the container.")


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


class SlurmClusterSpec(Model):
    """One Slurm cluster."""

    images: Images = Field(default_factory=Images, description="Images of the cluster's pods.")
    auth: Auth = Field(default_factory=Auth, description="Authentication between Slurm's daemons.")
    security: Security = Field(
        default_factory=Security, description="How login and worker pods are isolated from their Nodes."
    )
    sssd: Sssd = Field(
        default_factory=Sssd, description="A directory service with users in addition to those of the jail."
    )
    jail: Jail = Field(default_factory=Jail, description="The shared root file system.")
    controller: ControllerSpec = Field(default_factory=ControllerSpec, description="slurmctld.")
    login: Login = Field(default_factory=Login, description="The login nodes.")
    rest: RestSpec = Field(default_factory=RestSpec, description="slurmrestd.")
    partitions: list[Partition] = Field(
        default_factory=list, max_length=256, description="Partitions. Empty: one partition named main, with all nodes."
    )
    jobs: JobsSpec = Field(
        default_factory=JobsSpec, description="How jobs are limited to their allocated CPUs and memory."
    )
    topology: Topology = Field(
        default_factory=Topology,
        description=("The locations of nodes, so that Slurm places a job on nodes that are close to each other."),
    )
    config: Config = Field(default_factory=Config, description="Extra lines and files of Slurm's configuration.")
    job_containers: JobContainers = Field(
        default_factory=JobContainers, description="Jobs in containers, as with Pyxis."
    )
    upgrade: Upgrade = Field(
        default_factory=Upgrade, description="When the cluster adopts the defaults of a newer operator."
    )
    health: HealthSpec = Field(default_factory=HealthSpec, description="Health checks of the workers.")
    accounting: Accounting | None = Field(
        default=None,
        description=(
            "Accounting of jobs: slurmdbd and its database; it runs if this is set. {}: a MariaDB that the operator "
            "runs. It may be set while jobs run. After its removal the records stay, because the operator deletes "
            "neither the claim of the database nor its password."
        ),
    )
    metrics: MetricsSpec = Field(default_factory=MetricsSpec, description="Slurm's metrics for Prometheus.")
    external_nodes: ExternalNodes = Field(default_factory=ExternalNodes, description="Hosts outside Kubernetes.")

    @property
    def accounting_or_default(self) -> Accounting:
        """The accounting settings; all defaults if accounting is off."""
        return self.accounting or Accounting()
