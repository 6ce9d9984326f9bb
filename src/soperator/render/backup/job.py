"""The Job that makes one backup of a cluster.

Its pod runs no user's program and has no Kubernetes credentials and no port, so a user in the jail cannot reach its keys. It reads
slurmctld's state from its claim, read-only, on slurmctld's Node, because a claim of mode ReadWriteOnce is on one Node. It runs as root,
whose only capability is to read the files of others.
"""

from dataclasses import dataclass

from soperator.api.backup import Retention
from soperator.api.common import Resources, Scheduling
from soperator.render.backup import repository
from soperator.render.cluster import database_connection
from soperator.render.cluster.slurmctld import state_claim
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Backup, Cluster, Defaults, Object

ROLE = "backup"
#: How the container ends where another attempt would not fare better (agents/backup).
FINAL = 65
#: Seconds after which an attempt has failed, such as one whose claim cannot be mounted.
LONGEST = 6 * 3600
#: The largest size of keys, which are in memory.
_KEYS = "16Mi"


def has_database(cluster: Cluster) -> bool:
    """Return whether the backup includes the accounting database: only a database that the operator runs itself."""
    return cluster.spec.accounting is not None and database_connection.is_embedded(cluster.spec.accounting)


def secrets(cluster: Cluster) -> list[str]:
    """Return the names of the Secrets in a backup."""
    password = [names.database_password(cluster.name)] if has_database(cluster) else []
    return [names.auth_key(cluster.name), names.jwt_key(cluster.name), names.host_keys(cluster.name), *password]


def render_objects(backup: Backup, cluster: Cluster, text: str) -> Object:
    """Return the ConfigMap with the objects for the backup, as JSON."""
    name = names.backup(cluster.name, backup.name)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(backup, name),
        "data": {"objects.json": text},
    }


@dataclass(frozen=True)
class AttemptInputs:
    """The request of an attempt (empty: none), the version of the running Slurm, and the id of the repository that has to be there (empty: any)."""

    request: str
    slurm: str
    repository_id: str = ""


def render_job(backup: Backup, cluster: Cluster, defaults: Defaults, inputs: AttemptInputs) -> Object:
    """Return the Job of one attempt."""
    meta = _metadata(backup, names.backup(cluster.name, backup.name))
    if inputs.request:
        meta["annotations"] = {labels.REQUEST: inputs.request}
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [FINAL]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    spec: Object = {
        "backoffLimit": 2,
        "activeDeadlineSeconds": LONGEST,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": rules},
        "template": {
            "metadata": {"labels": labels.recommended(labels.role(cluster.name, ROLE))},
            "spec": _pod(backup, cluster, defaults, inputs),
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def keep_options(retention: Retention) -> str:
    """Return restic's options for the retention of backups."""
    kinds = {
        "last": retention.keep_last,
        "daily": retention.keep_daily,
        "weekly": retention.keep_weekly,
        "monthly": retention.keep_monthly,
    }
    return " ".join(f"--keep-{kind}={count}" for kind, count in kinds.items() if count)


def _metadata(backup: Backup, name: str) -> Object:
    """Return the metadata of an object of the backup; not the cluster's label, because the cluster's pass deletes what it does not render."""
    ours = {labels.MANAGED_BY: labels.MANAGER, labels.ROLE: ROLE}
    return {"name": name, "namespace": backup.namespace, "labels": ours, "ownerReferences": [backup.owner]}


def _pod(backup: Backup, cluster: Cluster, defaults: Defaults, inputs: AttemptInputs) -> Object:
    at = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": labels.role(cluster.name, "controller")},
    }
    chosen = cluster.spec.controller.scheduling
    spec = pod.base(
        cluster, defaults, Scheduling(tolerations=chosen.tolerations, node_selector=chosen.node_selector)
    ) | {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,  # its steps are safe to be killed at any point
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [at]}},
        "containers": [_container(backup, cluster, defaults, inputs)],
        "volumes": [
            {"name": "state", "persistentVolumeClaim": {"claimName": state_claim(cluster)}},
            *repository.volumes(backup.spec.repository),
            pod.config_map("objects", names.backup(cluster.name, backup.name)),
            *(
                {"name": f"secret-{n}", "secret": {"secretName": name, "defaultMode": pod.ROOT_READS}}
                for n, name in enumerate(secrets(cluster))
            ),
            pod.empty("backup"),
            pod.empty("keys", medium="Memory", sizeLimit=_KEYS),
            pod.empty("tmp"),
        ],
    }
    spec.pop("subdomain")
    return spec


def _container(backup: Backup, cluster: Cluster, defaults: Defaults, inputs: AttemptInputs) -> Object:
    kept = secrets(cluster)
    said = {
        "SOPERATOR_NAMESPACE": cluster.namespace,
        "SOPERATOR_CLUSTER": cluster.name,
        "SOPERATOR_SLURM": inputs.slurm,
        "SOPERATOR_BACKUP": backup.name,
        "SOPERATOR_KEEP": keep_options(backup.spec.retention),
    }
    if inputs.repository_id:
        said["SOPERATOR_REPOSITORY_ID"] = inputs.repository_id
    mounts = [
        pod.mount("state", "/var/spool/slurmctld", readOnly=True),
        *repository.mounts(backup.spec.repository),
        pod.mount("objects", "/etc/soperator/objects", readOnly=True),
        *(pod.mount(f"secret-{n}", f"/etc/soperator/secrets/{name}", readOnly=True) for n, name in enumerate(kept)),
        pod.mount("backup", "/soperator/backup"),
        pod.mount("keys", "/soperator/keys"),
        pod.mount("tmp", "/tmp"),
    ]
    if has_database(cluster):
        at = database_connection.storage(cluster)
        said |= {
            "SOPERATOR_DATABASE_HOST": at.host,
            "SOPERATOR_DATABASE_PORT": str(at.port),
            "SOPERATOR_DATABASE_USER": at.user,
            "SOPERATOR_DATABASE": at.database,
        }
        mounts.append(
            pod.mount(f"secret-{kept.index(at.password.secret_name)}", "/etc/soperator/database", readOnly=True)
        )
    return pod.container(cluster, ROLE, defaults.backup, Resources()) | {
        "args": ["take"],
        "env": [*pod.env(**said), *repository.env(backup.spec.repository)],
        "securityContext": pod.file_maker("DAC_OVERRIDE"),
        "volumeMounts": mounts,
    }
