"""The fields of a SlurmCluster for slurmdbd and its database.

Sites differ in who runs a database, so it is one of three: the operator's own, an external one, or one of mariadb-operator. For slurmdbd all three
are a host, a port, a user and a password in a Secret (`render/cluster/database_connection.py`).
"""

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DNS_NAME, Model, Opaque, Problem, Quantity
from soperator.api.common import POD_TEMPLATE, ClaimRef, Resources, Scheduling
from soperator.api.validation.cel import Rule, cel_grows, cel_same

#: How long records are kept, in the format of slurmdbd.conf(5); empty keeps them for ever.
AGE = r"^([1-9][0-9]{0,4}(hours|days|months))?$"
#: What MariaDB takes as a name without quotes, and slurmdbd as a value.
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_-]*$"
_HOST = r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$"

Age = Annotated[str, Field(pattern=AGE, max_length=16)]


class DatabaseClaim(ClaimRef):
    """The claim of the database."""

    size: Quantity = Field(default="10Gi", description="Size of the claim that the operator creates if name is empty.")


class DatabaseSpec(Model):
    """The MariaDB that the operator runs, unless externalDatabase or mariadbOperator is set."""

    claim: DatabaseClaim = Field(
        default_factory=DatabaseClaim,
        description="PersistentVolumeClaim with the records. The operator never deletes it.",
    )
    resources: Resources = Field(
        default_factory=Resources,
        description="Requests and limits of MariaDB. Its buffers take half of its memory: the limit, else the request, else 1Gi.",
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where MariaDB may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class SecretKey(Model):
    """One entry of a Secret in this namespace."""

    secret_name: Annotated[str, Field(pattern=DNS_NAME, min_length=1, max_length=253)] = Field(
        description="Name of the Secret."
    )
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        default="password", description="Key of the entry."
    )


class CertificateAuthority(Model):
    """The certificates of the authorities that sign a server's certificate, in a Secret in this namespace."""

    secret_name: Annotated[str, Field(pattern=DNS_NAME, min_length=1, max_length=253)] = Field(
        description="Name of the Secret."
    )
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        default="ca.crt", description="Key of the entry, which is PEM."
    )


class DatabaseTls(Model):
    """TLS to an external database."""

    ca: CertificateAuthority | None = Field(
        default=None, description="Certificates of the authorities that sign the server's certificate, as PEM."
    )
    certificate_secret_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="", description="Name of a Secret of type kubernetes.io/tls with slurmdbd's own certificate and key."
    )


class ExternalDatabase(Model):
    """A MariaDB or MySQL that the operator does not manage."""

    host: Annotated[str, Field(pattern=_HOST, max_length=253)] = Field(
        description="Name or address of the database's host."
    )
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=3306, description="Its port.")
    user: Annotated[str, Field(pattern=_NAME, max_length=80)] = Field(default="slurm", description="Name of the user.")
    database: Annotated[str, Field(pattern=_NAME, max_length=64)] = Field(
        default="slurm_acct_db",
        description="Name of the database, on which the user has all rights. slurmdbd creates its tables.",
    )
    password: SecretKey = Field(description="The user's password.")
    tls: DatabaseTls | None = Field(default=None, description="TLS to the server. Not set: no TLS.")


class MariaDb(Model):
    """A MariaDB resource, for which mariadb-operator creates the database."""

    replicas: Annotated[int, Field(ge=1, le=9)] = Field(
        default=1, description="Number of servers. More than one needs a replication setting in spec."
    )
    size: Quantity = Field(default="10Gi", description="Size of each server's claim.")
    storage_class_name: str = Field(
        default="", max_length=253, description="StorageClass of the claims. Empty: the default class of Kubernetes."
    )
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of a server.")
    spec: Opaque = Field(
        default_factory=dict,
        description="Further fields of the MariaDB resource's spec, such as galera, merged over the operator's.",
    )


class Purge(Model):
    """How long slurmdbd keeps records, such as 24hours, 30days or 12months. Empty: for ever."""

    jobs: Age = Field(default="", description="Jobs.")
    steps: Age = Field(default="", description="Steps of jobs.")
    events: Age = Field(default="", description="Events of nodes, such as a drain.")
    reservations: Age = Field(default="", description="Reservations.")
    suspensions: Age = Field(default="", description="Suspensions of jobs.")
    transactions: Age = Field(default="", description="Changes by sacctmgr.")
    usage: Age = Field(default="", description="Usage, aggregated by hour, day and month.")

    @property
    def kinds(self) -> dict[str, str]:
        """The time for which each kind of records is kept, by slurmdbd's name of the kind, without those that are kept for ever."""
        said = {
            "Event": self.events,
            "Job": self.jobs,
            "Resv": self.reservations,
            "Step": self.steps,
            "Suspend": self.suspensions,
            "TXN": self.transactions,
            "Usage": self.usage,
        }
        return {kind: age for kind, age in said.items() if age}


class Archive(Model):
    """Where purged records are archived."""

    claim_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="",
        description="Name of a PersistentVolumeClaim in this namespace to which slurmdbd writes purged records. Empty: purged records are lost.",
    )


class Slurmdbd(Model):
    """slurmdbd."""

    resources: Resources = Field(default_factory=Resources, description="Requests and limits of slurmdbd.")
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where slurmdbd may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


Enforced = Literal["associations", "limits", "qos", "safe", "wckeys", "nojobs", "nosteps"]


class Accounting(Model):
    """Accounting of jobs: slurmdbd and its database."""

    enforce: list[Enforced] = Field(
        default_factory=list,
        max_length=7,
        description=(
            "Requirements of slurmctld for a job, as AccountingStorageEnforce of slurm.conf: associations, limits, qos, "
            "safe, wckeys, nojobs, nosteps. With any of the first five, a user without an account cannot submit jobs."
        ),
    )
    managed_database: DatabaseSpec = Field(
        default_factory=DatabaseSpec, description="The MariaDB that the operator runs."
    )
    external_database: ExternalDatabase | None = Field(
        default=None, description="A database that the operator does not manage, instead of its own."
    )
    mariadb_operator: MariaDb | None = Field(
        default=None, description="A MariaDB resource of mariadb-operator, instead of the operator's own database."
    )
    purge: Purge = Field(default_factory=Purge, description="How long records are kept.")
    archive: Archive = Field(default_factory=Archive, description="Where purged records are archived.")
    slurmdbd: Slurmdbd = Field(default_factory=Slurmdbd, description="slurmdbd.")


#: `has` bounds the cost of a rule where `orValue` would not.
_PURGED = " || ".join(f"(has(self.purge.{field}) && self.purge.{field} != '')" for field in Purge.model_fields)
_CLAIM = "self.managedDatabase.claim"
#: Whether the operator creates no claim, so that none has immutable fields.
_NOT_MADE = f"has(self.externalDatabase) || has(self.mariadbOperator) || (has({_CLAIM}.name) && {_CLAIM}.name != '')"

ACCOUNTING = (
    Rule(
        cel="!has(self.externalDatabase) || !has(self.mariadbOperator)",
        message="only one database is possible: keep externalDatabase or mariadbOperator, and remove the other",
        holds=lambda said: said.external_database is None or said.mariadb_operator is None,
        field="external_database",
    ),
    Rule(
        cel=f"!has(self.archive) || !has(self.archive.claimName) || self.archive.claimName == '' || (has(self.purge) && ({_PURGED}))",
        message="archive needs purge: set in purge how long records are kept, or remove archive",
        holds=lambda said: not said.archive.claim_name or bool(said.purge.kinds),
        field="archive",
    ),
    Rule(
        cel=f"{_NOT_MADE} || ({cel_same('storageClassName', '.managedDatabase.claim')})",
        message="storageClassName of the database's claim cannot be changed, because Kubernetes never moves a claim: restore the former value",
        field="managed_database",
    ),
    Rule(
        cel=f"{_NOT_MADE} || {cel_grows('size', '.managedDatabase.claim')}",
        message="size of the database's claim can only grow: set managedDatabase.claim.size to at least the former size",
        field="managed_database",
    ),
)


def accounting_references(
    said: Accounting, claims: Collection[str] | None, secrets: Collection[str] | None
) -> Iterator[Problem]:
    """Yield the claims and Secrets that the spec names and that do not exist; None means that they are not known."""
    if said.archive.claim_name and claims is not None and said.archive.claim_name not in claims:
        remedy = "no PersistentVolumeClaim in the namespace has this name: create it, or remove archive"
        yield Problem("spec.accounting.archive.claimName", said.archive.claim_name, remedy)
    named = {"password": said.external_database.password.secret_name} if said.external_database else {}
    if said.external_database and said.external_database.tls:
        tls = said.external_database.tls
        named |= {
            "tls.ca": tls.ca.secret_name if tls.ca else "",
            "tls.certificateSecretName": tls.certificate_secret_name,
        }
    for field, secret in named.items():
        if secret and secrets is not None and secret not in secrets:
            path = f"spec.accounting.externalDatabase.{field}" + (
                "" if field == "tls.certificateSecretName" else ".secretName"
            )
            yield Problem(path, secret, "no Secret in the namespace has this name: create it, or name another one")
