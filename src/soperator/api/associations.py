"""The kinds SlurmAccount and SlurmQOS: the users of a cluster, their shares and their limits.

The operator keeps slurmdbd's database in sync with them, so that accounts can live in Git. Fields have Slurm's names if Slurm has one; options
without a field go into `others`, by sacctmgr's name. The operator does not change what a spec does not set.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from soperator.api.base import Model
from soperator.api.common import ClusterMember
from soperator.api.status import Condition, ObservedGeneration, Sentence
from soperator.api.validation.cel import Rule

#: sacctmgr makes names of accounts and QOS lower case, and takes them apart at commas.
NAME = r"^([a-z0-9][a-z0-9_.-]*)?$"
USER = r"^[a-z_][a-z0-9_.-]*\$?$"
#: No control characters, no quotation marks, which sacctmgr strips, and no bars, with which it separates its output.
TEXT = r"""^([^\x00-\x1f\x7f"'|\\`\s]([^\x00-\x1f\x7f"'|\\`]*[^\x00-\x1f\x7f"'|\\`\s])?)?$"""
#: Minutes, or days-hours:minutes:seconds.
TIME = r"^([0-9]{1,5}-[0-9]{1,2}(:[0-5][0-9]){0,2}|[0-9]{1,7}|[0-9]{1,4}:[0-5][0-9]:[0-5][0-9])?$"
COUNT = r"^[0-9]{1,15}[KMGTP]?$"
_VALUE = r"^[A-Za-z0-9][A-Za-z0-9_.:/,=+-]*$"


def _number_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


AccountName = Annotated[str, Field(pattern=NAME, max_length=63)]
QosName = Annotated[str, Field(pattern=NAME, min_length=1, max_length=63)]
Plain = Annotated[str, Field(pattern=TEXT, max_length=200)]
Time = Annotated[
    str,
    Field(pattern=TIME, max_length=16, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Amount = Annotated[
    str,
    Field(pattern=COUNT, max_length=16, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Share = Annotated[
    str,
    Field(pattern=r"^([0-9]{1,9}|parent)?$", max_length=9, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Value = Annotated[
    str,
    Field(pattern=_VALUE, max_length=256, json_schema_extra={"x-kubernetes-int-or-string": True}),
    BeforeValidator(_number_text),
]
Most = Annotated[int, Field(ge=0, le=2_000_000_000)]
Tres = Annotated[dict[str, Amount], Field(max_length=32)]
_TRES = "by TRES, such as cpu: 64, mem: 512G (in M without a unit) or gres/gpu: 8"


class AccountLimits(Model):
    """Limits of an account, or of one user in it.

    The operator does not change a limit that is left out. An account's limits also apply to the accounts below it.
    """

    grp_tres: Tres = Field(default_factory=dict, description=f"Maximum for all its running jobs together, {_TRES}.")
    grp_jobs: Most | None = Field(default=None, description="Maximum number of its running jobs.")
    grp_submit_jobs: Most | None = Field(default=None, description="Maximum number of its pending and running jobs.")
    grp_wall: Time = Field(
        default="", description="Maximum run time of all its jobs together, in the format of maxWall."
    )
    max_tres: Tres = Field(default_factory=dict, description=f"Maximum for one job, {_TRES}.")
    max_tres_per_node: Tres = Field(default_factory=dict, description=f"Maximum for one job on each node, {_TRES}.")
    max_jobs: Most | None = Field(default=None, description="Maximum number of running jobs of each of its users.")
    max_submit_jobs: Most | None = Field(
        default=None, description="Maximum number of pending and running jobs of each of its users."
    )
    max_wall: Time = Field(
        default="",
        description="Maximum run time of one job: minutes, or a time such as 1-12:00:00 (days-hours:minutes:seconds).",
    )
    others: dict[str, Value] = Field(
        default_factory=dict,
        max_length=32,
        description="Further fields of an association by sacctmgr's names, such as GrpTRESRunMins: cpu=1000.",
    )


class AccountUser(Model):
    """A user of an account."""

    name: Annotated[str, Field(pattern=USER, min_length=1, max_length=32)] = Field(
        description="Name of the user. The user may be created later."
    )
    fairshare: Share = Field(default="", description="Share of the user within the account, or the word parent.")
    limits: AccountLimits = Field(default_factory=AccountLimits, description="Limits of the user in this account.")
    default: bool = Field(
        default=False, description="Whether this account is the default for the user's jobs that name no account."
    )


class SlurmAccountSpec(ClusterMember):
    """An account of one cluster, and its users. Fields that are left out stay unchanged in an existing account."""

    name: AccountName = Field(
        default="", description="Name of the account in Slurm, lower case. Empty: the name of the object."
    )
    parent: AccountName = Field(
        default="",
        description="The parent account, which another object may define. A new account without a parent is below root.",
    )
    description: Plain = Field(default="", description="Purpose of the account. Slurm stores it in lower case.")
    organization: Plain = Field(default="", description="Owner of the account. Slurm stores it in lower case.")
    fairshare: Share = Field(
        default="", description="Share of the account among the accounts of its parent, or the word parent."
    )
    limits: AccountLimits = Field(default_factory=AccountLimits, description="Limits of the account.")
    qos: list[QosName] = Field(default_factory=list, max_length=64, description="QOS that its jobs may use.")
    default_qos: AccountName = Field(default="", description="QOS of jobs that name none.")
    users: list[AccountUser] = Field(
        default_factory=list,
        max_length=2000,
        description="Users of the account. A user who is removed from the list loses what this object set. A user whom another "
        "administrator added stays.",
    )
    deletion_policy: Literal["Orphan", "Delete"] = Field(
        default="Orphan",
        description=(
            "Fate of the account when this object is deleted. Orphan: it stays, with its users. Delete: what this object "
            "created is deleted, once it has no jobs and no users or accounts of others; what existed before the object "
            "stays."
        ),
    )

    def account(self, name: str) -> str:
        """Return the account's name in Slurm, which is by default the name of the object."""
        return self.name or name


class QosLimits(Model):
    """Limits of a QOS. The operator does not change a limit that is left out."""

    grp_tres: Tres = Field(default_factory=dict, description=f"Maximum for all its running jobs together, {_TRES}.")
    grp_jobs: Most | None = Field(default=None, description="Maximum number of its running jobs.")
    grp_submit_jobs: Most | None = Field(default=None, description="Maximum number of its pending and running jobs.")
    max_tres: Tres = Field(default_factory=dict, description=f"Maximum for one job, {_TRES}.")
    max_tres_per_user: Tres = Field(
        default_factory=dict, description=f"Maximum for all running jobs of each user, {_TRES}."
    )
    max_jobs_per_user: Most | None = Field(default=None, description="Maximum number of running jobs of each user.")
    max_submit_jobs_per_user: Most | None = Field(
        default=None, description="Maximum number of pending and running jobs of each user."
    )
    max_tres_per_account: Tres = Field(
        default_factory=dict, description=f"Maximum for all running jobs of each account, {_TRES}."
    )
    max_jobs_per_account: Most | None = Field(
        default=None, description="Maximum number of running jobs of each account."
    )
    max_wall: Time = Field(
        default="",
        description="Maximum run time of one job: minutes, or a time such as 1-12:00:00 (days-hours:minutes:seconds).",
    )
    min_tres: Tres = Field(default_factory=dict, description=f"Minimum that a job must request, {_TRES}.")
    others: dict[str, Value] = Field(
        default_factory=dict,
        max_length=32,
        description="Further fields of a QOS by sacctmgr's names, such as GrpTRESRunMins: cpu=1000.",
    )


Flag = Literal[
    "DenyOnLimit", "EnforceUsageThreshold", "NoDecay", "NoReserve", "OverPartQOS", "PartitionMaxNodes",
    "PartitionMinNodes", "PartitionTimeLimit", "RequiresReservation", "UsageFactorSafe",
]  # fmt: skip


class SlurmQOSSpec(ClusterMember):
    """A QOS, which all clusters of its database share. Fields that are left out stay unchanged in an existing QOS."""

    name: AccountName = Field(
        default="", description="Name of the QOS in Slurm, lower case. Empty: the name of the object."
    )
    description: Plain = Field(default="", description="Purpose of the QOS. Slurm stores it in lower case.")
    priority: Most | None = Field(default=None, description="Priority that the QOS adds to its jobs.")
    flags: list[Flag] = Field(default_factory=list, max_length=16, description="Flags of sacctmgr(1).")
    preempt: list[QosName] = Field(
        default_factory=list, max_length=64, description="QOS whose jobs its jobs may preempt."
    )
    preempt_mode: Literal["", "cluster", "cancel", "requeue", "suspend"] = Field(
        default="", description="How its jobs are preempted. cluster: as PreemptMode of the cluster."
    )
    grace_time: Most | None = Field(default=None, description="Seconds for which a preempted job may continue.")
    usage_factor: Annotated[str, Field(pattern=r"^([0-9]{1,6}(\.[0-9]{1,4})?)?$", max_length=12)] = Field(
        default="", description='Factor by which the usage of its jobs is multiplied, such as "0.5".'
    )
    limits: QosLimits = Field(default_factory=QosLimits, description="Limits of its jobs.")
    deletion_policy: Literal["Orphan", "Delete"] = Field(
        default="Orphan",
        description=(
            "Fate of the QOS when this object is deleted. Orphan: it stays. Delete: it is deleted if this object created "
            "it, once no job and no account uses it."
        ),
    )

    def qos(self, name: str) -> str:
        """Return the QOS's name in Slurm, which is by default the name of the object."""
        return self.name or name


FieldName = Annotated[str, Field(pattern=r"^[A-Za-z]+$", max_length=64)]


class AppliedStatus(Model):
    """The fields of an association or QOS that the operator set, so that it clears a field that is removed from the spec."""

    user: Annotated[str, Field(max_length=32)] = Field(
        default="", description="Name of the user. Empty: the account itself."
    )
    fields: list[FieldName] = Field(default_factory=list, max_length=64, description="sacctmgr's names.")


class SlurmAccountStatus(Model):
    """The observed state of the account."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready is True if Slurm's database matches the spec. Otherwise Reconciling or Stalled is True.",
    )
    account: Annotated[str, Field(max_length=63)] = Field(default="", description="Name of the account in Slurm.")
    users: Annotated[str, Field(max_length=32)] = Field(default="", description="Users in Slurm, of desired users.")
    applied: list[AppliedStatus] = Field(default_factory=list, max_length=4001, description="What was set.")
    why: Sentence = Field(default="", description="Why Slurm's database does not match the spec. Empty if it does.")


class SlurmQOSStatus(Model):
    """The observed state of the QOS."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready is True if Slurm's database matches the spec. Otherwise Reconciling or Stalled is True.",
    )
    qos: Annotated[str, Field(max_length=63)] = Field(default="", description="Name of the QOS in Slurm.")
    applied: list[AppliedStatus] = Field(default_factory=list, max_length=1, description="What was set.")
    why: Sentence = Field(default="", description="Why Slurm's database does not match the spec. Empty if it does.")


def _kept(field: str) -> str:
    return f"has(self.{field}) ? (has(oldSelf.{field}) && self.{field} == oldSelf.{field}) : !has(oldSelf.{field})"


_MOVED = "cannot be changed, because what it created would be left behind: create a new {kind}, and delete this one"

ACCOUNT = (
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message=f"clusterRef {_MOVED.format(kind='SlurmAccount')}",
        field="cluster_ref",
    ),
    Rule(cel=_kept("name"), message=f"name {_MOVED.format(kind='SlurmAccount')}", field="name"),
    Rule(
        cel="!has(self.name) || self.name != 'root'",
        message="root is Slurm's own account, above all others: choose another name",
        holds=lambda spec: spec.name != "root",
        field="name",
    ),
)
QOS = (
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message=f"clusterRef {_MOVED.format(kind='SlurmQOS')}",
        field="cluster_ref",
    ),
    Rule(cel=_kept("name"), message=f"name {_MOVED.format(kind='SlurmQOS')}", field="name"),
)


def names(kind: str) -> tuple[Rule, ...]:
    """Return the rules on metadata.name."""
    return (
        Rule(
            cel="size(self.metadata.name) <= 63",
            message="metadata.name may have at most 63 characters, because marks in Slurm's database contain it: choose a shorter name",
            holds=lambda name: len(name) <= 63,
        ),
        *(
            (
                Rule(
                    cel="self.metadata.name != 'root' || (has(self.spec.name) && self.spec.name != '')",
                    message="metadata.name root is the name of Slurm's own account, above all others: choose another name, or set spec.name",
                    holds=lambda name: name != "root",
                ),
            )
            if kind == "SlurmAccount"
            else ()
        ),
    )
