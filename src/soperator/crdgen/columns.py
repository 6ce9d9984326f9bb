"""The columns of `kubectl get` for the operator's kinds, and their short names. REASON is one word, so that a line stays short; `-o wide` adds
WHY, a message with the remedy.
"""

from dataclasses import dataclass

from soperator.api.associations import (
    SlurmAccountSpec,
    SlurmAccountStatus,
    SlurmQOSSpec,
    SlurmQOSStatus,
)
from soperator.api.backup import SlurmBackupSpec, SlurmBackupStatus
from soperator.api.base import Model
from soperator.api.healthcheck import HealthCheckSpec, HealthCheckStatus
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.status import NodeSetStatus, SlurmClusterStatus


@dataclass(frozen=True)
class Column:
    """One printer column; `priority` 1 shows it with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    priority: int = 0


@dataclass(frozen=True)
class Definition:
    """The parts of a CustomResourceDefinition that the model does not have; `scalable` adds the scale subresource."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    description: str
    spec: type[Model]
    status: type[Model]
    columns: tuple[Column, ...]
    scalable: bool = False


_READY = Column(
    "Ready",
    '.status.conditions[?(@.type=="Ready")].status',
    description="Whether everything in the spec is ready.",
)
_AVAILABLE = Column(
    "Available", '.status.conditions[?(@.type=="Available")].status', description="Whether jobs can run."
)
_REASON = Column(
    "Reason", '.status.conditions[?(@.type=="Ready")].reason', description="Why the object is not ready, in one word."
)
_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_WHY = Column("Why", ".status.why", description="Why the object is not ready, and the remedy.", priority=1)

CLUSTER = Definition(
    kind="SlurmCluster",
    plural="slurmclusters",
    short_names=("slc",),
    description=(
        "SlurmCluster is one Slurm cluster: its controller, login nodes, shared root file system and partitions. "
        "NodeSets that refer to it are its workers."
    ),
    spec=SlurmClusterSpec,
    status=SlurmClusterStatus,
    columns=(
        _READY,
        _AVAILABLE,
        Column("Controller", ".status.controller.summary", description="Controllers, ready of wanted."),
        Column("Login", ".status.login.summary", description="Login nodes, ready of desired."),
        Column("Workers", ".status.workers.summary", description="Workers of all NodeSets, ready of desired."),
        Column("Address", ".status.address", description="The ssh command that reaches the login nodes."),
        _REASON,
        _AGE,
        Column("Slurm", ".status.slurm", description="Version of Slurm.", priority=1),
        _WHY,
    ),
)

NODESET = Definition(
    kind="NodeSet",
    plural="nodesets",
    short_names=("nset",),
    description=(
        "NodeSet is a number of equal worker nodes of one SlurmCluster. Pod <cluster>-<nodeset>-<n> "
        "is Slurm node <nodeset>-<n>."
    ),
    spec=NodeSetSpec,
    status=NodeSetStatus,
    columns=(
        Column("Cluster", ".spec.clusterRef.name", description="SlurmCluster of the nodes."),
        Column("Wanted", ".status.desiredReplicas", "integer", "The number of nodes that should exist."),
        Column("Ready", ".status.readyReplicas", "integer", "Nodes that Slurm can start jobs on."),
        Column("Asleep", ".status.asleep", "integer", "Nodes that sleep until a job needs them."),
        Column(
            "Waking", ".status.waking", "integer", "Nodes that Slurm has requested and that have not registered yet."
        ),
        Column("Updated", ".status.updatedReplicas", "integer", "Nodes that match the spec.", priority=1),
        Column("Idle", ".status.idle", "integer", "Nodes that are idle.", priority=1),
        Column("Allocated", ".status.allocated", "integer", "Nodes with jobs.", priority=1),
        Column("Draining", ".status.draining", "integer", "Nodes that are drained or draining.", priority=1),
        Column("Down", ".status.down", "integer", "Nodes that are down or not responding.", priority=1),
        _AVAILABLE,
        _REASON,
        _AGE,
        _WHY,
    ),
    scalable=True,
)

HEALTHCHECK = Definition(
    kind="HealthCheck",
    plural="healthchecks",
    short_names=("hchk",),
    description=(
        "HealthCheck is a check that needs a whole node. It runs on the nodes of one SlurmCluster as Slurm jobs that users' jobs preempt."
    ),
    spec=HealthCheckSpec,
    status=HealthCheckStatus,
    columns=(
        Column("Cluster", ".spec.clusterRef.name", description="SlurmCluster whose nodes it checks."),
        Column("Schedule", ".spec.when.schedule", description="Schedule of the runs on all nodes, in UTC.", priority=1),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether it runs."),
        Column("Last", ".status.lastRunTime", "date", "Submission of the last run with a result."),
        Column("Active", ".status.activeRuns", "integer", "Runs that go on."),
        Column("Passed", ".status.summary", description="Nodes whose last run passed, of all nodes."),
        Column("Failing", ".status.failingNodes", "integer", "Nodes that fail it."),
        _REASON,
        _AGE,
        _WHY,
    ),
)

_IN_STEP = Column(
    "Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether Slurm's database matches the spec."
)

ACCOUNT = Definition(
    kind="SlurmAccount",
    plural="slurmaccounts",
    short_names=("slacct",),
    description=(
        "SlurmAccount is an account of one SlurmCluster with its users, shares and limits. The operator keeps Slurm's database in sync with it."
    ),
    spec=SlurmAccountSpec,
    status=SlurmAccountStatus,
    columns=(
        Column("Cluster", ".spec.clusterRef.name", description="SlurmCluster of the account."),
        Column("Account", ".status.account", description="Name of the account in Slurm."),
        Column("Parent", ".spec.parent", description="The account above it."),
        Column("Users", ".status.users", description="Users in Slurm, of desired."),
        _IN_STEP,
        _REASON,
        _AGE,
        _WHY,
    ),
)

QOS = Definition(
    kind="SlurmQOS",
    plural="slurmqos",
    short_names=("slqos",),
    description="SlurmQOS is a QOS in the database of one SlurmCluster. The operator keeps the database in sync with it.",
    spec=SlurmQOSSpec,
    status=SlurmQOSStatus,
    columns=(
        Column("Cluster", ".spec.clusterRef.name", description="SlurmCluster whose database has the QOS."),
        Column("QOS", ".status.qos", description="Name of the QOS in Slurm."),
        Column("Priority", ".spec.priority", "integer", "Priority that the QOS adds to its jobs."),
        _IN_STEP,
        _REASON,
        _AGE,
        _WHY,
    ),
)

BACKUP = Definition(
    kind="SlurmBackup",
    plural="slurmbackups",
    short_names=("slbak",),
    description=(
        "SlurmBackup makes backups of one SlurmCluster: slurmctld's state, accounting, keys and objects, encrypted in a repository of restic."
    ),
    spec=SlurmBackupSpec,
    status=SlurmBackupStatus,
    columns=(
        Column("Cluster", ".spec.clusterRef.name", description="SlurmCluster of the backups."),
        Column("Schedule", ".spec.schedule", description="Schedule of the backups, in UTC."),
        Column(
            "Ready",
            '.status.conditions[?(@.type=="Ready")].status',
            description="Whether backups are made when they are due, and the last one succeeded.",
        ),
        Column("Last", ".status.lastBackup.time", "date", "Start of the last successful backup."),
        Column("Snapshot", ".status.lastBackup.snapshot", description="Id of the snapshot in the repository."),
        Column("Size", ".status.lastBackup.size", description="Its size."),
        _REASON,
        _AGE,
        Column("Next", ".status.next", description="When the next backup is due.", priority=1),
        _WHY,
    ),
)

ALL = (CLUSTER, NODESET, HEALTHCHECK, ACCOUNT, QOS, BACKUP)
