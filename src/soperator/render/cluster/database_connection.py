"""The connection of slurmdbd to its database, and its configuration files.

A database of any kind is a `Storage` for slurmdbd. No file has the password: slurmdbd's container adds it (images/slurm/roles/slurmdbd). Source of
each setting: slurmdbd.conf(5) and slurm.conf(5) of 24.11.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from soperator.api.fields.accounting import Accounting, CertificateAuthority, ExternalDatabase, SecretKey
from soperator.render.parts import names, pod
from soperator.render.parts.model import Cluster
from soperator.render.parts.paths import BUNDLE
from soperator.render.slurm_conf import accounting
from soperator.slurm import conf

PASSWORD = "password"
#: The user and the database in a MariaDB that the operator creates.
USER, DATABASE = "slurm", "slurm_acct_db"
ARCHIVE = "/var/spool/slurmdbd"
_PLUGINS = f"{BUNDLE}/lib/slurm"


@dataclass(frozen=True)
class Storage:
    """A database for slurmdbd's records, as one value for all three kinds of database."""

    host: str
    port: int
    user: str
    database: str
    password: SecretKey
    ca: CertificateAuthority | None = None
    certificate: str = ""

    @property
    def secrets(self) -> list[str]:
        """The names of all Secrets that slurmdbd reads for the connection."""
        ca = [self.ca.secret_name] if self.ca else []
        return [self.password.secret_name, *ca, *([self.certificate] if self.certificate else [])]


def is_embedded(said: Accounting) -> bool:
    """Return whether the database is a MariaDB that the operator runs."""
    return said.external_database is None and said.mariadb_operator is None


def storage(cluster: Cluster) -> Storage:
    """Return the database of a cluster."""
    said = cluster.spec.accounting_or_default
    if said.external_database is not None:
        return _external(said.external_database)
    host = names.database(cluster.name)
    if said.mariadb_operator is not None and said.mariadb_operator.replicas > 1:
        host = f"{host}-primary"  # mariadb-operator's Service of the server that takes writes
    own = SecretKey(secret_name=names.database_password(cluster.name), key=PASSWORD)
    return Storage(host, names.DATABASE_PORT, USER, DATABASE, own)


def _external(said: ExternalDatabase) -> Storage:
    ca, certificate = (said.tls.ca, said.tls.certificate_secret_name) if said.tls else (None, "")
    return Storage(said.host, said.port, said.user, said.database, said.password, ca, certificate)


def files(cluster: Cluster) -> dict[str, str]:
    """Return slurmdbd.conf without the password, and a slurm.conf for the sacctmgr that probes slurmdbd."""
    auth = {"AuthType": f"auth/{cluster.spec.auth.type}"}
    known = {"ClusterName": cluster.name, "SlurmctldHost": names.controller(cluster.name), "SlurmUser": "slurm"}
    plugins = {"PluginDir": _PLUGINS}
    here = {"AccountingStorageHost": "localhost"}  # its Service leads to it only after this has succeeded
    mine = conf.lines(
        known | auth | {"CredType": f"cred/{cluster.spec.auth.type}"} | plugins | accounting.client(cluster) | here
    )
    extra = (
        cluster.spec.config.extra_lines.slurmdbd.rstrip()
    )  # an empty line follows, because the last one may end in a backslash
    return {
        "slurmdbd.conf": conf.render(conf.lines(_slurmdbd(cluster, auth | plugins)))
        + (f"{extra}\n\n" if extra else ""),
        "slurm.conf": conf.render(mine),
    }


def _slurmdbd(cluster: Cluster, more: Mapping[str, str]) -> dict[str, str | int]:
    said, at = cluster.spec.accounting_or_default, storage(cluster)
    tls = {
        "SSL_CA": at.ca and f"{pod.PRIVATE}/ca.crt",
        "SSL_CERT": at.certificate and f"{pod.PRIVATE}/tls.crt",
        "SSL_KEY": at.certificate and f"{pod.PRIVATE}/tls.key",
    }
    options = ",".join(f"{key}={value}" for key, value in tls.items() if value)
    purge = {f"Purge{kind}After": age for kind, age in said.purge.kinds.items()}
    archive = {_archived(kind): "yes" for kind in said.purge.kinds} if said.archive.claim_name else {}
    return {
        **more,
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={pod.PRIVATE}/keys/jwt_hs256.key",
        "SlurmUser": "slurm",
        "DbdHost": f"{names.accounting(cluster.name)}-0",
        "DbdPort": names.DBD_PORT,
        "PidFile": "/tmp/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": at.host,
        "StoragePort": at.port,
        "StorageUser": at.user,
        "StorageLoc": at.database,
        **({"StorageParameters": options} if options else {}),
        "ArchiveDir": ARCHIVE,
        **purge,
        **archive,
    }


def _archived(kind: str) -> str:
    """Return the setting that archives records of a kind; some settings have a plural name."""
    return f"Archive{kind}{'' if kind in ('Suspend', 'TXN', 'Usage') else 's'}"
