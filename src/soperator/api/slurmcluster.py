"""The kind SlurmCluster: one Slurm cluster, without its workers.

It has what all nodes share: images, authentication, the jail, the controller, login, REST, partitions and the lines of slurm.conf that the operator
does not own. NodeSets that refer to it describe the machines.
"""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import ABSOLUTE_PATH, SLURM_NAME, Model, Opaque, Quantity, Text
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
from soperator.api.fields.external_nodes import ExternalNodes
from soperator.api.fields.health import HealthSpec
from soperator.api.fields.metrics import MetricsSpec
from soperator.api.fields.rest import RestSpec
from soperator.api.fields.service import LoginService
from soperator.api.fields.topology import Topology
from soperator.api.fields.upgrade import Upgrade


class Images(Model):
    """Images of the cluster's pods; an empty one is the operator's default at the time when the cluster was created or last upgraded."""

    slurm: str = Field(default="", max_length=512, description="slurmctld, slurmd, slurmrestd, sackd and slurmdbd.")
    login: str = Field(default="", max_length=512, description="sshd, started inside the jail.")
    munge: str = Field(default="", max_length=512, description="munged; used with auth.type munge only.")
    agents: str = Field(
        default="",
        max_length=512,
        description=("Checks and seals the jail, keeps the users known to slurmctld, and exports metrics."),
    )
    sssd: str = Field(default="", max_length=512, description="SSSD; used with sssd.configSecretName only.")
    mariadb: str = Field(
        default="",
        max_length=512,
        description="MariaDB; used where accounting has a database of the operator's own only.",
    )
    proxy: str = Field(
        default="", max_length=512, description="nginx, before the operator's slurmrestd and that of users."
    )
    pull_policy: PullPolicy = Field(default="IfNotPresent", description="When the images are pulled.")
    pull_secrets: list[str] = Field(
        default_factory=list, max_length=8, description=("Names of Secrets with registry credentials.")
    )


class Sssd(Model):
    """Users and groups of a directory service (LDAP, Active Directory, FreeIPA) beside those of the jail, by SSSD."""

    config_secret_name: str = Field(
        default="",
        max_length=253,
        description=(
            "Name of a Secret with sssd.conf and whatever files it names, such as certificates, which lie in /etc/soperator/sssd. "
            "Empty: the jail's users are all."
        ),
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of SSSD in each pod.")


class Auth(Model):
    """How Slurm's daemons trust each other. REST always uses JSON web tokens."""

    type: Literal["slurm", "munge"] = Field(
        default="slurm",
        description=("slurm: auth/slurm with one key and sackd on login. munge: a munged beside each daemon."),
    )
    rotate_request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="",
        description=(
            "A request to replace the keys of Slurm, or of munge, and of REST under running jobs. Any word that was not there before is "
            "one request, for example this month's; it is carried out once. Host keys of SSH stay."
        ),
    )
    keep_keys: bool = Field(
        default=False,
        description=(
            "Whether the Secrets with keys stay when the cluster is deleted, so that a new one of this "
            "name takes them over."
        ),
    )


class Refill(Model):
    """A request to bring the jail image into a jail that is filled already. It is carried out once."""

    request: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)] = Field(
        default="",
        description=(
            "Any word that was not there before is one request, for example today's date; the jail's record keeps all "
            "that were carried out."
        ),
    )
    mode: Literal["Missing", "Overwrite"] = Field(
        default="Missing",
        description=(
            "Missing: put back what the jail lacks of its image, while everything runs. Overwrite: drain all workers, wait until "
            "no job runs, close login, replace the whole root by the image, and resume."
        ),
    )
    keep: list[Annotated[str, Field(pattern=ABSOLUTE_PATH, max_length=1024)]] = Field(
        default_factory=lambda: ["/home"],
        max_length=64,
        description=(
            "Paths of the jail that an overwrite keeps, besides the users and groups that people created. The rest of the "
            "former root stays as root.previous on the claim until the next overwrite."
        ),
    )


class Jail(Model):
    """The shared root file system of all login and worker nodes."""

    claim: ClaimRef = Field(
        default_factory=ClaimRef,
        description=("The ReadWriteMany claim that holds the jail. It is never deleted by the operator."),
    )
    per_node: bool = Field(
        default=False,
        description=(
            "Whether each login and worker node has its own root instead of a shared one: a claim of this size and class for each "
            "pod, filled from the image when the pod is created, and deleted with it. What users keep then belongs on submounts, "
            "such as /home."
        ),
    )
    image: str = Field(
        default="",
        max_length=512,
        description=("Image whose file system fills the jail; empty means the operator's default."),
    )
    populate: Literal["Once", "Never"] = Field(
        default="Once",
        description=(
            "Once: fill an empty claim, never touch a filled one. Never: the claim already holds a root file system."
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
        description="The same escape hatch as of a role, for the Jobs that fill the jail and make mount points in it.",
    )

    @property
    def has_job(self) -> bool:
        """Whether a Job of the operator fills the jail: it is shared by all nodes, and the operator may fill it."""
        return self.populate == "Once" and not self.per_node


#: slurmctlds of a cluster, its backups among them.
MOST_CONTROLLERS = 4


class ControllerSpec(Model):
    """slurmctld."""

    replicas: Annotated[int, Field(ge=1, le=MOST_CONTROLLERS)] = Field(
        default=1,
        description=(
            "Number of slurmctld pods. The first leads; the others are its backups, in their order, and need a claim of the state that "
            "several Nodes can write (ReadWriteMany)."
        ),
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of slurmctld.")
    state: StateClaim = Field(
        default_factory=StateClaim,
        description=(
            "The claim that holds Slurm's state: running and queued jobs. A claim that the operator created is deleted with the cluster."
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
        description=("SSH public keys that may log in as root of the jail, who makes the other users."),
    )
    password_authentication: bool = Field(
        default=False,
        description="Whether users may log in by password too: one of the jail's, or of the directory's. Root never does.",
    )
    resources: Resources = Field(
        default_factory=Resources,
        description="Requests and limits of a login pod; it requests 100m of CPU unless this says CPU.",
    )
    tmp_size: Quantity | None = Field(
        default=None,
        description=(
            "How much users may have in /tmp of a login pod together. The kubelet evicts a pod that holds more, with its sessions; "
            "without a size the Node's disk is the bound. A claim at /tmp refuses the write instead."
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
        description=("NodeSets whose nodes belong to it; with no features either, all of the cluster's."),
    )
    features: list[Annotated[str, Field(pattern=SLURM_NAME, max_length=64)]] = Field(
        default_factory=list,
        max_length=64,
        description="Features of NodeSets: nodes that have one of them belong to it too, whichever NodeSet they are of.",
    )
    default: bool = Field(default=False, description="Whether jobs that name no partition go here.")
    hidden: bool = Field(default=False, description="Whether sinfo and squeue leave it out.")
    options: dict[str, Annotated[str, Field(pattern=r"^[^\n\r]*$", max_length=1024)]] = Field(
        default_factory=dict,
        max_length=64,
        description=("Further options of the partition by their slurm.conf names, for example MaxTime."),
    )


class ExtraLines(Model):
    """Lines appended to the generated files. One that sets what the operator owns is refused."""

    slurm: Text = Field(default="", description="Extra lines of slurm.conf.")
    cgroup: Text = Field(default="", description="Extra lines of cgroup.conf.")
    gres: Text = Field(default="", description="Extra lines of gres.conf.")
    plugstack: Text = Field(
        default="",
        description=(
            "SPANK plugins beside those of the operator, as lines of plugstack.conf: required or optional, the whole path, "
            "arguments. The file must be there in slurmd's image and in the jail, at the same path."
        ),
    )


class Config(Model):
    """Lines appended to the generated files, and files of their own."""

    extra_lines: ExtraLines = Field(default_factory=ExtraLines, description="Lines appended to the generated files.")
    topology: Text = Field(
        default="",
        description=(
            "The file topology.conf, for topology/tree. Name every node that a NodeSet may have: one that it leaves out takes no jobs. "
            "What follows from labels of Nodes is spec.topology."
        ),
    )
    job_submit: Text = Field(
        default="", description="The file job_submit.lua, by which slurmctld judges and changes what is submitted."
    )
    prolog: Text = Field(
        default="",
        description="A script that slurmd runs as root before a job begins on a node, outside the jail. If it fails, the node is drained.",
    )
    epilog: Text = Field(default="", description="The same after a job has ended on a node.")


class JobsSpec(Model):
    """How jobs are limited to their allocated CPUs and memory."""

    limits: Literal["Sampled", "Cgroup", "None"] = Field(
        default="Sampled",
        description=(
            "Sampled: memory is given out like CPUs, and a step that is seen above its own is ended. Cgroup: the kernel holds each "
            "job to its CPUs and its memory; the Nodes' container runtime must give pods a writable cgroup v2. None: CPUs are given "
            "out, memory is not, and nothing holds a job to either."
        ),
    )
    bind_cpus: bool = Field(
        default=False,
        description=(
            "Whether tasks are bound to the CPUs that Slurm gave them. Only where each worker has CPUs of its own, as a whole Node or "
            "by the kubelet's static CPU manager: all workers count their CPUs from the first, and would crowd on it."
        ),
    )


class Security(Model):
    """How login and worker pods are isolated from their Nodes."""

    user_namespace: bool = Field(
        default=True,
        description=(
            "Whether pods run in a user namespace, so that root in the jail is nobody on the Node. Turn it off where the jail's "
            "file system cannot be idmapped."
        ),
    )
    id_count: Annotated[int, Field(ge=65536, le=4294967294)] = Field(
        default=65536,
        description=(
            "Ids of users and groups are below this. More than 65536 needs a kubelet whose userNamespaces.idsPerPod is at least "
            "that; a pod on any other Node does not start, with a message."
        ),
    )


class JobContainers(Model):
    """The defaults of --container-image in srun, sbatch and salloc."""

    enabled: bool = Field(
        default=True,
        description="Whether they know the options. Off where config.extraLines.plugstack brings Pyxis, for two plugins cannot have the same.",
    )
    scope: Literal["Job", "Global"] = Field(
        default="Job",
        description="How long a container with a name lasts on its node: as its job, or until the node's disk is new.",
    )
    entrypoint: bool = Field(default=False, description="Whether the image's entry point runs.")
    remap_root: bool = Field(default=False, description="Whether the user is root in name.")
    mount_home: bool = Field(default=False, description="Whether the user's home is mounted.")


class SlurmClusterSpec(Model):
    """One Slurm cluster."""

    images: Images = Field(default_factory=Images, description="Images of the cluster's pods.")
    auth: Auth = Field(default_factory=Auth, description="How Slurm's daemons trust each other.")
    security: Security = Field(
        default_factory=Security, description="How login and worker pods are isolated from their Nodes."
    )
    sssd: Sssd = Field(default_factory=Sssd, description="A directory service with users beside those of the jail.")
    jail: Jail = Field(default_factory=Jail, description="The shared root file system.")
    controller: ControllerSpec = Field(default_factory=ControllerSpec, description="slurmctld.")
    login: Login = Field(default_factory=Login, description="The login nodes.")
    rest: RestSpec = Field(default_factory=RestSpec, description="slurmrestd.")
    partitions: list[Partition] = Field(
        default_factory=list, max_length=256, description="Partitions; none means one, named main, over all nodes."
    )
    jobs: JobsSpec = Field(
        default_factory=JobsSpec, description="How jobs are held to the CPUs and the memory that they were given."
    )
    topology: Topology = Field(default_factory=Topology, description="Which nodes are close to each other.")
    config: Config = Field(default_factory=Config, description="Extra lines and files of Slurm's configuration.")
    job_containers: JobContainers = Field(
        default_factory=JobContainers, description="Jobs in containers, as with Pyxis."
    )
    upgrade: Upgrade = Field(
        default_factory=Upgrade, description="When the cluster takes over what a newer operator brings."
    )
    health: HealthSpec = Field(default_factory=HealthSpec, description="Health checks of the workers.")
    accounting: Accounting | None = Field(
        default=None,
        description=(
            "Who used what: slurmdbd and its database. Jobs are accounted where this is there; {} takes a MariaDB that the operator runs. It may "
            "come while jobs run. Where it is removed the records stay: the operator never deletes the claim of the database, nor its password."
        ),
    )
    metrics: MetricsSpec = Field(default_factory=MetricsSpec, description="Slurm's metrics for Prometheus.")
    external_nodes: ExternalNodes = Field(default_factory=ExternalNodes, description="Hosts outside Kubernetes.")

    @property
    def accounting_or_default(self) -> Accounting:
        """Accounting, with all defaults where it is off."""
        return self.accounting or Accounting()
