"""The database of slurmdbd, if the operator manages it: its own MariaDB, or a MariaDB resource of mariadb-operator.

Both survive the end of accounting and the deletion of the cluster, as the users' files do, because the claim, the resource and the password have no
owner. Buffer sizes follow from the pod's memory. Slurm needs a long lock_wait_timeout and large packets.
"""

from soperator.api.common import Resources
from soperator.api.fields.accounting import Accounting, MariaDb
from soperator.api.validation.quantity import amount
from soperator.render.cluster import database_connection, slurmdbd
from soperator.render.cluster.network import asked, policy
from soperator.render.jail.claims import claim
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic

_DATA = "/var/lib/mysql"
_MIB = 1024 * 1024
#: The memory for which buffers are sized where no limit is set.
_MEMORY = "1Gi"


def render_database(cluster: Cluster, defaults: Defaults, secrets: str = "") -> list[Object]:
    """Return the objects of the database; none for an external one. `secrets` is the version of its password."""
    said = cluster.spec.accounting_or_default
    if said.mariadb_operator is not None:
        return [_resource(cluster, said.mariadb_operator)]
    if not database_connection.is_embedded(said):
        return []
    name = names.database(cluster.name)
    claims = (
        []
        if said.managed_database.claim.name
        else [claim(cluster, name, said.managed_database.claim, "ReadWriteOnce", owned=False)]
    )
    made = slurmdbd.service(cluster, name, "database", "mariadb", names.DATABASE_PORT)
    return [*claims, _stateful_set(cluster, defaults, secrets), made, _policy(cluster, defaults.operator_namespace)]


def database_claim(cluster: Cluster) -> str:
    """Return the claim of the MariaDB that the operator runs."""
    return cluster.spec.accounting_or_default.managed_database.claim.name or names.database(cluster.name)


def has_password(said: Accounting | None) -> bool:
    """Return whether the operator creates the database's password."""
    return said is not None and said.external_database is None


def buffers(resources: Resources) -> int:
    """Return the size of InnoDB's buffer pool in MiB: half of the memory, because connections, sorts and MariaDB itself need the rest."""
    said = {**resources.requests, **resources.limits}.get("memory", _MEMORY)
    return max(16, int(amount(said)) // _MIB // 2)


def _log(pool: int) -> int:
    """Return the size of InnoDB's redo log in MiB. Because of the log, InnoDB need not write each changed page at once."""
    return min(1024, max(48, pool // 4))


def _stateful_set(cluster: Cluster, defaults: Defaults, secrets: str) -> Object:
    selector, said = labels.role(cluster.name, "database"), cluster.spec.accounting_or_default.managed_database
    name = names.database(cluster.name)
    spec = pod.reads_secrets(pod.base(cluster, defaults, said.scheduling)) | {
        "terminationGracePeriodSeconds": 120,  # its buffers have to be written
        "initContainers": [_own_data(cluster, defaults)],
        "containers": [_mariadb(cluster, defaults)],
        "volumes": [
            pod.claim("data", database_claim(cluster)),
            pod.keys(names.database_password(cluster.name)),
            pod.empty("run", medium="Memory", sizeLimit="64Mi"),
            pod.empty("tmp"),
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, name, "database"),
        "spec": {
            "serviceName": names.nodes_service(cluster.name),
            "replicas": 1,
            "podManagementPolicy": "Parallel",  # in order, a pod that cannot start would never give way to its corrected successor
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {"labels": labels.recommended(selector), "annotations": {labels.SECRETS: secrets}},
                    "spec": spec,
                },
                said.pod_template,
            ),
        },
    }


def _image(cluster: Cluster, defaults: Defaults) -> str:
    return cluster.spec.images.mariadb or defaults.mariadb


def _mariadb(cluster: Cluster, defaults: Defaults) -> Object:
    resources = cluster.spec.accounting_or_default.managed_database.resources
    pool = buffers(resources)
    ping = ["mariadb-admin", "--no-defaults", "--socket=/run/mysqld/socket", "ping"]
    return pod.container(cluster, "mariadb", _image(cluster, defaults), resources) | {
        "args": [f"--innodb-buffer-pool-size={pool}M", f"--innodb-log-file-size={_log(pool)}M"],
        "env": pod.env(
            SOPERATOR_DATABASE=database_connection.DATABASE,
            SOPERATOR_USER=database_connection.USER,
            SOPERATOR_WATCH=str(names.JAIL_PORT),
        ),
        "ports": [{"name": "mariadb", "containerPort": names.DATABASE_PORT}],
        "securityContext": pod.unprivileged(pod.DATABASE_UID),
        "volumeMounts": [
            pod.mount("data", _DATA),
            pod.mount("keys", slurmdbd.SECRET, readOnly=True),
            pod.mount("run", "/run/mysqld"),
            pod.mount("tmp", "/tmp"),
        ],
        # No liveness probe: after a crash it first recovers from its log, which may take long.
        "readinessProbe": {"exec": {"command": ping}, "periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5},
    }


def _own_data(cluster: Cluster, defaults: Defaults) -> Object:
    """Return the init container that gives the folder to MariaDB's user, as for slurmctld's state."""
    return pod.container(cluster, "own-data", _image(cluster, defaults), Resources()) | {
        "command": ["chown", f"{pod.DATABASE_UID}:{pod.DATABASE_UID}", _DATA],
        "securityContext": pod.file_maker("CHOWN"),
        "volumeMounts": [pod.mount("data", _DATA)],
    }


def _policy(cluster: Cluster, operator: str) -> Object:
    """Return the NetworkPolicy by which only slurmdbd and backups reach the database, and the operator the pod's report about its volume.

    `render/cluster/network.py` excludes this pod from the pods that the cluster's pods may reach.
    """
    sources = [{"podSelector": {"matchLabels": labels.role(cluster.name, role)}} for role in ("accounting", "backup")]
    rule = {"from": sources, "ports": [{"port": names.DATABASE_PORT, "protocol": "TCP"}]}
    selector = labels.role(cluster.name, "database")
    return policy(cluster, names.database(cluster.name), selector, rule, asked(operator), role="database")


def _resource(cluster: Cluster, said: MariaDb) -> Object:
    """Return the resource of mariadb-operator, which creates the database, the user and its rights from the first fields of the spec."""
    pool = buffers(said.resources)
    lines = {
        "bind-address": "*",
        "innodb_buffer_pool_size": f"{pool}M",
        "innodb_log_file_size": f"{_log(pool)}M",
        "innodb_lock_wait_timeout": 900,
        "max_allowed_packet": "64M",
    }
    password = names.database_password(cluster.name)
    spec: Object = {
        "database": database_connection.DATABASE,
        "username": database_connection.USER,
        "passwordSecretKeyRef": {"name": password, "key": database_connection.PASSWORD},
        "rootPasswordSecretKeyRef": {
            "name": f"{names.database(cluster.name)}-root",
            "key": "password",
            "generate": True,
        },
        "replicas": said.replicas,
        "storage": {"size": said.size}
        | ({"storageClassName": said.storage_class_name} if said.storage_class_name else {}),
        "myCnf": "".join(["[mariadb]\n", *(f"{key}={value}\n" for key, value in lines.items())]),
    }
    size = {key: dict(value) for key, value in said.resources.model_dump().items() if value}
    spec |= {"resources": size} if size else {}
    return {
        "apiVersion": "k8s.mariadb.com/v1alpha1",
        "kind": "MariaDB",
        "metadata": pod.metadata(cluster, names.database(cluster.name), "database", owned=False),
        "spec": strategic(spec, said.spec),
    }
