"""The kinds SlurmAccount and SlurmQOS: who may use a cluster, with which share and within which limits.

They are kept in sync with slurmdbd's database. Names are Slurm's own where Slurm has one; options without a field here go into `others`, by
sacctmgr's name. What a spec does not set is not changed.
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
_TRES = "by TRES, such as cpu: 64, mem: 512G (M where no unit is given) or gres/gpu: 8"


class AccountLimits(Model):
    """Limits of an account, or of one user in it.

    A limit that is left out is not changed; an account's limits also apply to the accounts below it.
    """

    grp_tres: Tres = Field(default_factory=dict, description=f"What all its running jobs together may hold, {_TRES}.")
    grp_jobs: Most | None = Field(default=None, description="Jobs of it that may run at once.")
    grp_submit_jobs: Most | None = Field(default=None, description="Jobs of it that may wait or run at once.")
    grp_wall: Time = Field(default="", description="Time that all its jobs together may run, as maxWall.")
    max_tres: Tres = Field(default_factory=dict, description=f"What one job may hold, {_TRES}.")
    max_tres_per_node: Tres = Field(default_factory=dict, description=f"What one job may hold on a node, {_TRES}.")
    max_jobs: Most | None = Field(default=None, description="Jobs of each user of it that may run at once.")
    max_submit_jobs: Most | None = Field(
        default=None, description="Jobs of each user of it that may wait or run at once."
    )
    max_wall: Time = Field(
        default="", description="Time limit of one job: minutes, or as 1-12:00:00 (days-hours:minutes:seconds)."
    )
    others: dict[str, Value] = Field(
        default_factory=dict,
        max_length=32,
        description="Further fields of an association by sacctmgr's names, such as GrpTRESRunMins: cpu=1000.",
    )


class AccountUser(Model):
    """A user of an account."""

    name: Annotated[str, Field(pattern=USER, min_length=1, max_length=32)] = Field(
        description="Name of the user, who need not exist yet."
    )
    fairshare: Share = Field(default="", description="The user's share within the account, or parent.")
    limits: AccountLimits = Field(default_factory=AccountLimits, description="Limits of the user in this account.")
    default: bool = Field(
        default=False, description="Whether jobs of the user that name no account are this account's."
    )


class SlurmAccountSpec(ClusterMember):
    """An account of one cluster, and its users. Fields that are left out are not changed in an existing account."""

    name: AccountName = Field(
        default="", description="Name of the account in Slurm, lower case; empty: that of the object."
    )
    parent: AccountName = Field(
        default="",
        description="The account above it, which may be another object's; a new account without it is below root.",
    )
    description: Plain = Field(default="", description="What it is for. Slurm keeps it in lower case.")
    organization: Plain = Field(default="", description="Whose it is. Slurm keeps it in lower case.")
    fairshare: Share = Field(default="", description="Its share among the accounts of its parent, or parent.")
    limits: AccountLimits = Field(default_factory=AccountLimits, description="Limits of the account.")
    qos: list[QosName] = Field(default_factory=list, max_length=64, description="The QOS that its jobs may use.")
    default_qos: AccountName = Field(default="", description="The QOS of jobs that name none.")
    users: list[AccountUser] = Field(
        default_factory=list,
        max_length=2000,
        description="Its users. A user who is removed from the list loses what this object gave; a user whom somebody else added to the "
        "account stays.",
    )
    deletion_policy: Literal["Orphan", "Delete"] = Field(
        default="Orphan",
        description=(
            "What happens to the account when this object is deleted. Orphan: it stays, with its users. Delete: what this object "
            "created is deleted, when no job and no users or accounts of others are in it; what existed before the object stays."
        ),
    )

    def account(self, name: str) -> str:
        """Return the name in Slurm of the account of an object."""
        return self.name or name


class QosLimits(Model):
    """Limits of a QOS. What is left out is not touched."""

    grp_tres: Tres = Field(default_factory=dict, description=f"What all running jobs of it together may hold, {_TRES}.")
    grp_jobs: Most | None = Field(default=None, description="Jobs of it that may run at once.")
    grp_submit_jobs: Most | None = Field(default=None, description="Jobs of it that may wait or run at once.")
    max_tres: Tres = Field(default_factory=dict, description=f"What one job may hold, {_TRES}.")
    max_tres_per_user: Tres = Field(
        default_factory=dict, description=f"What the running jobs of each user may hold, {_TRES}."
    )
    max_jobs_per_user: Most | None = Field(default=None, description="Jobs of each user that may run at once.")
    max_submit_jobs_per_user: Most | None = Field(
        default=None, description="Jobs of each user that may wait or run at once."
    )
    max_tres_per_account: Tres = Field(
        default_factory=dict, description=f"What the running jobs of each account may hold, {_TRES}."
    )
    max_jobs_per_account: Most | None = Field(default=None, description="Jobs of each account that may run at once.")
    max_wall: Time = Field(
        default="", description="Time limit of one job: minutes, or as 1-12:00:00 (days-hours:minutes:seconds)."
    )
    min_tres: Tres = Field(default_factory=dict, description=f"What a job has to ask for at least, {_TRES}.")
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
    """A QOS, which all clusters of its database share. Fields that are left out are not changed in an existing QOS."""

    name: AccountName = Field(
        default="", description="Name of the QOS in Slurm, lower case; empty: that of the object."
    )
    description: Plain = Field(default="", description="What it is for. Slurm keeps it in lower case.")
    priority: Most | None = Field(default=None, description="What it adds to the priority of jobs.")
    flags: list[Flag] = Field(default_factory=list, max_length=16, description="Flags of sacctmgr(1).")
    preempt: list[QosName] = Field(
        default_factory=list, max_length=64, description="The QOS whose jobs make way for its jobs."
    )
    preempt_mode: Literal["", "cluster", "cancel", "requeue", "suspend"] = Field(
        default="", description="How its jobs make way: cluster is as the cluster has it."
    )
    grace_time: Most | None = Field(default=None, description="How long a preempted job may continue, in seconds.")
    usage_factor: Annotated[str, Field(pattern=r"^([0-9]{1,6}(\.[0-9]{1,4})?)?$", max_length=12)] = Field(
        default="", description='How much its jobs count as used, such as "0.5".'
    )
    limits: QosLimits = Field(default_factory=QosLimits, description="Limits of its jobs.")
    deletion_policy: Literal["Orphan", "Delete"] = Field(
        default="Orphan",
        description=(
            "What happens to the QOS when this object is deleted. Orphan: it stays. Delete: it is deleted, if this object created "
            "it, when no job and no account uses it."
        ),
    )

    def qos(self, name: str) -> str:
        """Return the name in Slurm of the QOS of an object."""
        return self.name or name


FieldName = Annotated[str, Field(pattern=r"^[A-Za-z]+$", max_length=64)]


class AppliedStatus(Model):
    """Which fields of an association or QOS were set, so that a field that is removed from the spec is cleared."""

    user: Annotated[str, Field(max_length=32)] = Field(default="", description="The user; empty: the account itself.")
    fields: list[FieldName] = Field(default_factory=list, max_length=64, description="sacctmgr's names.")


class SlurmAccountStatus(Model):
    """How the account is."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready: whether Slurm has it as the spec says; Reconciling or Stalled while it has not.",
    )
    account: Annotated[str, Field(max_length=63)] = Field(default="", description="Name of the account in Slurm.")
    users: Annotated[str, Field(max_length=32)] = Field(default="", description="Users in Slurm, of wanted.")
    applied: list[AppliedStatus] = Field(default_factory=list, max_length=4001, description="What was set.")
    why: Sentence = Field(default="", description="Why it is not as the spec says; empty when it is.")


class SlurmQOSStatus(Model):
    """How the QOS is."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready: whether Slurm has it as the spec says; Reconciling or Stalled while it has not.",
    )
    qos: Annotated[str, Field(max_length=63)] = Field(default="", description="Name of the QOS in Slurm.")
    applied: list[AppliedStatus] = Field(default_factory=list, max_length=1, description="What was set.")
    why: Sentence = Field(default="", description="Why it is not as the spec says; empty when it is.")


def _kept(field: str) -> str:
    return f"has(self.{field}) ? (has(oldSelf.{field}) && self.{field} == oldSelf.{field}) : !has(oldSelf.{field})"


_MOVED = "cannot be changed, for what it made would be left behind: make a new {kind}, and delete this one"

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
            message="metadata.name may have at most 63 characters, for marks in Slurm's database hold it: choose a shorter one",
            holds=lambda name: len(name) <= 63,
        ),
        *(
            (
                Rule(
                    cel="self.metadata.name != 'root' || (has(self.spec.name) && self.spec.name != '')",
                    message="metadata.name root is that of Slurm's own account, above all others: choose another one, or give spec.name",
                    holds=lambda name: name != "root",
                ),
            )
            if kind == "SlurmAccount"
            else ()
        ),
    )
