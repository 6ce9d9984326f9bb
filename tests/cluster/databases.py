"""Databases that are not the operator's: a MariaDB with TLS in a namespace of its own, and one that stands in for what mariadb-operator makes.

The first is set up by hand, as docs/howto/accounting.md has it. The second needs mariadb-operator's CRD, which validates the resource that we apply;
what that operator would make of it is made by hand: a MariaDB behind the Service of the resource's name, with its database, user and password.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from local import mariadb_crd
from tests.cluster import books
from tests.cluster.lab import Lab, is_ready

ELSEWHERE = "database-elsewhere"
#: A password that SQL, a shell and a line of slurmdbd.conf may stumble over.
PASSWORD = "pa'ss#wo\\rd $1"
_SERVER = """
set -eu
[ -d /data/mysql ] || mariadb-install-db --no-defaults --datadir=/data --auth-root-authentication-method=socket --auth-root-socket-user=mysql \\
    --skip-test-db > /tmp/install
exec mariadbd --no-defaults --datadir=/data --socket=/tmp/socket --bind-address='*' --skip-name-resolve --innodb-buffer-pool-size=64M \\
    --max-allowed-packet=64M --innodb-lock-wait-timeout=900 "$@"
"""
_TLS = ("--require-secure-transport", "--ssl-ca=/tls/ca.crt", "--ssl-cert=/tls/tls.crt", "--ssl-key=/tls/tls.key")


@dataclass(frozen=True)
class Database:
    """What a cluster's spec.accounting says of a database, and the pod in which it runs."""

    said: dict[str, Any] = field(default_factory=dict)
    namespace: str = ""
    pod: str = ""


@contextmanager
def embedded(lab: Lab, image: str) -> Iterator[Database]:
    """The operator's own."""
    books.throw_away(lab)
    books.make_volume(lab, f"{lab.cluster}-database")
    yield Database({}, lab.namespace, f"{lab.cluster}-database-0")


@contextmanager
def external(lab: Lab, image: str) -> Iterator[Database]:
    """A MariaDB in another namespace that lets nobody in without a certificate."""
    there = Lab(lab.target, ELSEWHERE, lab.cluster, lab.timings)
    books.apply(there, {"kind": "Namespace", "metadata": {"name": ELSEWHERE}})
    authority = Authority.new()
    books.apply(there, secret("server", authority.signed(f"db.{ELSEWHERE}.svc"), "kubernetes.io/tls"))
    try:
        server(there, "db", image, *_TLS, tls="server")
        query(
            there,
            "db",
            "CREATE DATABASE slurm_demo; SET sql_mode = 'NO_BACKSLASH_ESCAPES'; "
            f"CREATE USER hpc@'%' IDENTIFIED BY '{PASSWORD.replace(chr(39), chr(39) * 2)}' REQUIRE X509; GRANT ALL ON slurm_demo.* TO hpc@'%';",
        )
        books.apply(
            lab,
            secret("hpc-db", {"password": PASSWORD}),
            secret("db-ca", {"ca.crt": authority.pem}),
            secret("hpc-db-client", authority.signed("hpc"), "kubernetes.io/tls"),
        )
        tls = {"ca": {"secretName": "db-ca", "key": "ca.crt"}, "certificateSecretName": "hpc-db-client"}
        at = {
            "host": f"db.{ELSEWHERE}.svc",
            "user": "hpc",
            "database": "slurm_demo",
            "password": {"secretName": "hpc-db"},
            "tls": tls,
        }
        yield Database({"externalDatabase": at}, ELSEWHERE, "db")
    finally:
        lab.kubectl("delete", "namespace", ELSEWHERE, "--wait=false")
        lab.kubectl("delete", "secret", "hpc-db", "db-ca", "hpc-db-client", "--ignore-not-found")


@contextmanager
def operated(lab: Lab, image: str) -> Iterator[Database]:
    """mariadb-operator's resource, which its CRD accepts to the last field, and a MariaDB as that operator would make it."""
    lab.kubectl("apply", "--server-side", "-f", str(mariadb_crd.find()))
    established = ("wait", "--for=condition=Established", "--timeout=10s", "crd/mariadbs.k8s.mariadb.com")
    # `kubectl wait` itself fails on a CRD that has no status yet.
    lab.until("the CRD is established", lambda: lab.tried(*established).returncode == 0, 60)
    name = f"{lab.cluster}-database"
    said = {"mariadbOperator": {"size": "1Gi", "resources": {"requests": {"memory": "256Mi"}}}}
    try:
        lab.patch("slurmcluster", lab.cluster, {"accounting": said})
        lab.until("the resource is there", lambda: lab.look("mariadb", name), 120)
        password = lab.until("the password is there", lambda: lab.look("secret", f"{name}-password"), 60)
        wanted = lab.look("mariadb", name)["spec"]
        server(lab, name, image)
        text = base64.b64decode(password["data"][wanted["passwordSecretKeyRef"]["key"]]).decode()
        user, database = wanted["username"], wanted["database"]
        query(
            lab,
            name,
            f"CREATE DATABASE {database}; CREATE USER {user}@'%' IDENTIFIED BY '{text}'; GRANT ALL ON {database}.* TO {user}@'%';",
        )
        yield Database(said, lab.namespace, name)
    finally:
        lab.kubectl("delete", "mariadb,service,pod", name, "--ignore-not-found", "--wait=false")
        lab.kubectl("delete", "secret", f"{name}-password", "--ignore-not-found")
        lab.kubectl("delete", "crd", "mariadbs.k8s.mariadb.com", "--ignore-not-found")


def server(lab: Lab, name: str, image: str, *options: str, tls: str = "") -> None:
    """A MariaDB that nobody but root of its pod may enter as yet, ready, behind a Service of its name."""
    script = ["bash", "-c", _SERVER, "mariadb", *options]
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/tmp"}]
    volumes: list[dict[str, Any]] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    if tls:
        mounts.append({"name": "tls", "mountPath": "/tls"})
        volumes.append({"name": "tls", "secret": {"secretName": tls}})
    container = {
        "name": "mariadb",
        "image": image,
        "command": script,
        "securityContext": {"runAsUser": 64034, "runAsGroup": 64034},
        "volumeMounts": mounts,
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
    }
    spec = {
        "containers": [container],
        "volumes": volumes,
        "securityContext": {"fsGroup": 64034},
        "terminationGracePeriodSeconds": 5,
    }
    books.apply(
        lab,
        {"kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec},
        {"kind": "Service", "metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 3306}]}},
    )
    lab.until(f"MariaDB {name} is ready", lambda: is_ready(lab.look("pod", name)), 90)


def query(lab: Lab, pod: str, sql: str) -> str:
    """What MariaDB answers to root of its pod."""
    words = (
        "exec",
        "-i",
        pod,
        "-c",
        "mariadb",
        "--",
        "mariadb",
        "--no-defaults",
        "--socket=/tmp/socket",
        "-u",
        "mysql",
        "-N",
    )
    return lab.kubectl(*words, stdin=sql)


def secret(name: str, content: dict[str, str], kind: str = "Opaque") -> dict[str, Any]:
    """A Secret with these entries."""
    return {"kind": "Secret", "metadata": {"name": name}, "type": kind, "stringData": content}


@dataclass(frozen=True)
class Authority:
    """Who signs certificates of a database and of its clients."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls) -> "Authority":
        """One with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, _certificate("authority", key, "authority", key, is_authority=True))

    @property
    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def signed(self, name: str) -> dict[str, str]:
        """A certificate and its key, beside that of the authority, as a Secret of Kubernetes holds them."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(name, key, "authority", self.key)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        public = made.public_bytes(serialization.Encoding.PEM)
        return {"tls.crt": public.decode(), "tls.key": private.decode(), "ca.crt": self.pem}


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    is_authority: bool = False,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
