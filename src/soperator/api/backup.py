"""The kind SlurmBackup: backups of one SlurmCluster into an encrypted repository of restic, on a schedule or by request.

The status reports the content of the last backup and the time of the next one. The repository is the source of all of its facts.
"""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DNS_NAME, Model
from soperator.api.common import ClusterMember
from soperator.api.fields.accounting import CertificateAuthority, SecretKey
from soperator.api.status import Condition, ObservedGeneration, Sentence
from soperator.api.validation.cel import Rule
from soperator.api.validation.schedule import SCHEDULE

Word = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)]
_Keep = Annotated[int, Field(ge=0, le=1000)]
#: A URL with a host and perhaps a port: restic takes the path as bucket and folder.
ENDPOINT = r"^https?://([A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$"
#: Names of buckets that every store accepts.
BUCKET = r"^[a-z0-9][-.a-z0-9]{1,61}[a-z0-9]$"
PREFIX = r"^([A-Za-z0-9_][-._A-Za-z0-9]*(/[A-Za-z0-9_][-._A-Za-z0-9]*)*)?$"
Content = Literal["accounting", "keys", "objects", "state"]


class Retention(Model):
    """Which backups of this SlurmBackup stay in the repository; one that several rules keep counts for each of them."""

    keep_last: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=7, description="Number of newest backups that stay. At least one always stays."
    )
    keep_daily: _Keep = Field(default=0, description="Number of days of which the newest backup stays.")
    keep_weekly: _Keep = Field(default=0, description="Number of weeks of which the newest backup stays.")
    keep_monthly: _Keep = Field(default=0, description="Number of months of which the newest backup stays.")


class S3Store(Model):
    """A bucket in a store with the API of S3. Requests have the bucket in their path unless the store is that of Amazon."""

    endpoint: Annotated[str, Field(pattern=ENDPOINT, max_length=253)] = Field(
        description="URL of the store, such as https://s3.example.com or http://minio.storage.svc:9000, without a path."
    )
    bucket: Annotated[str, Field(pattern=BUCKET, max_length=63)] = Field(
        description="Name of the bucket, which has to exist."
    )
    prefix: Annotated[str, Field(pattern=PREFIX, max_length=253)] = Field(
        default="",
        description="Folders in the bucket above that of the repository, such as slurm/production. Empty: none.",
    )
    region: Annotated[str, Field(pattern=r"^([A-Za-z0-9][-A-Za-z0-9]*)?$", max_length=63)] = Field(
        default="", description="Region of the bucket. Empty: the store says it."
    )
    credentials_secret_name: Annotated[str, Field(pattern=DNS_NAME, min_length=1, max_length=253)] = Field(
        description="Name of a Secret in this namespace with the entries AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    )
    ca: CertificateAuthority | None = Field(
        default=None,
        description="Certificates of the authorities that sign the store's certificate, as PEM. Not set: those of the image, which are Debian's.",
    )


class Repository(Model):
    """Where the backups are: a repository of restic, which is encrypted with a password and stores equal data once."""

    claim_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="",
        description="PersistentVolumeClaim in this namespace for the repository. The operator never creates or deletes it. Choose storage "
        "that does not share the fate of the cluster, with the reclaim policy Retain.",
    )
    s3: S3Store | None = Field(default=None, description="Store with the API of S3, instead of claimName.")
    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][-._A-Za-z0-9]*$", max_length=63)] = Field(
        default="restic",
        description="Folder of the repository in the claim, or in the bucket below s3.prefix. It is created if it is missing.",
    )
    password: SecretKey = Field(
        description="Entry of a Secret with the password of the repository. Keep a copy of it elsewhere: without it no backup can be read."
    )


class SlurmBackupSpec(ClusterMember):
    """When backups of a cluster are made, and where they are."""

    schedule: Annotated[str, Field(pattern=rf"{SCHEDULE}|^$", max_length=256)] = Field(
        default="",
        description="Schedule of the backups, in UTC, as in a CronJob: minute, hour, day, month, weekday, or a macro such as @daily. "
        "Empty: only by request.",
    )
    run_request: Word = Field(
        default="",
        description="A request to make a backup now. Any new value is one request, which is carried out once; a former value is not.",
    )
    suspend: bool = Field(default=False, description="Whether new backups are suspended.")
    retention: Retention = Field(default_factory=Retention, description="Which of its own backups stay.")
    repository: Repository = Field(description="Where the backups are.")


class LastBackup(Model):
    """The last successful backup."""

    snapshot: str = Field(default="", max_length=64, description="Id of the snapshot in the repository.")
    time: str = Field(default="", max_length=64, description="When it began.")
    seconds: int = Field(default=0, ge=0, description="Duration of the backup, in seconds.")
    size: str = Field(default="", max_length=32, description="Size of its content, as a quantity.")
    added: str = Field(default="", max_length=32, description="Size that the repository grew by, as a quantity.")
    next_job_id: int = Field(default=0, ge=0, description="The next job id of the cluster at that time.")
    contents: list[Content] = Field(default_factory=list, max_length=8, description="Parts of the backup.")
    repository: str = Field(default="", max_length=1024, description="Where the repository was.")
    repository_id: str = Field(
        default="",
        max_length=64,
        description="Id of the repository. The next backup into the same place is refused if it is missing there.",
    )


class SlurmBackupStatus(Model):
    """The state of the backups of a cluster."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready is True if backups are made when they are due and the last one succeeded. Otherwise Reconciling or Stalled is True.",
    )
    last_backup: LastBackup = Field(default_factory=LastBackup, description="The last successful backup.")
    next: str = Field(default="", max_length=64, description="When the next backup is due by the schedule.")
    request: Word = Field(default="", description="The last completed request.")
    completed_requests: list[Word] = Field(
        default_factory=list,
        max_length=32,
        description="The last 32 completed requests, the newest last. A value in it is not carried out again.",
    )
    attempted: int = Field(default=0, ge=0, description="When the last attempt began, in seconds since 1970.")
    why: Sentence = Field(default="", description="The fault or the progress. Empty without either.")


BACKUP = (
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message="clusterRef cannot be changed, because the backups are of its cluster: create a new SlurmBackup for the other cluster",
        field="cluster_ref",
    ),
)

REPOSITORY = (
    Rule(
        cel="(has(self.claimName) && self.claimName != '') != has(self.s3)",
        message="the repository has one place: set exactly one of claimName and s3",
        holds=lambda repository: bool(repository.claim_name) != (repository.s3 is not None),
    ),
)

NAMES = (
    Rule(
        cel="size(self.metadata.name) <= 40",
        message="metadata.name may have at most 40 characters, because names of Jobs contain it: choose a shorter name",
        holds=lambda name: len(name) <= 40,
    ),
    Rule(
        cel="!self.metadata.name.contains('.')",
        message="metadata.name must not contain dots, because names of Jobs contain it: choose a name of a-z, 0-9 and '-'",
        holds=lambda name: "." not in name,
    ),
)
