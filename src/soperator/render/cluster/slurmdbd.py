"""slurmdbd: a StatefulSet of one pod behind a Service, because two on one database would count usage twice.

The password of the database stays in its Secret: slurmdbd's container writes it into a file that only slurmdbd can read, and the operator never reads
it. A liveness probe could kill a busy slurmdbd, which may convert its tables for hours after an upgrade before it listens, so there is none.
"""

import hashlib
from collections.abc import Mapping

from soperator.api.common import Resources
from soperator.render.cluster.database_connection import (
    ARCHIVE,
    PASSWORD,
    Storage,
    files,
    storage,
)
from soperator.render.cluster.slurmctld import identity
from soperator.render.jail import per_node_root
from soperator.render.jail.claims import jail_claim
from soperator.render.parts import (
    labels,
    names,
    pod,
    sssd,
)
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic

_GIVEN = "/etc/soperator/accounting"
#: The password, and for TLS ca.crt, tls.crt and tls.key.
SECRET = "/etc/soperator/database"
#: Present while slurm.conf names slurmdbd: then a database without the cluster is the wrong one (images/slurm/accounting). It reaches a running pod,
#: so it is not part of the digest.
REGISTERED = "registered"


def render_accounting(cluster: Cluster, defaults: Defaults, secrets: str = "") -> list[Object]:
    """Return the ConfigMap, the StatefulSet and the Service of slurmdbd; `secrets` are the versions of the Secrets that it reads."""
    content = files(cluster)
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in content.items()).encode()).hexdigest()[:16]
    name = names.accounting(cluster.name)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": pod.metadata(cluster, name, "accounting"),
        "data": content | ({REGISTERED: cluster.name} if cluster.accounted else {}),
    }
    noted = {labels.CONFIG: digest, labels.SECRETS: secrets, labels.IMAGE: pod.slurm_image(cluster, defaults)}
    return [
        config,
        _stateful_set(cluster, defaults, noted),
        service(cluster, name, "accounting", "slurmdbd", names.DBD_PORT),
    ]


def _stateful_set(cluster: Cluster, defaults: Defaults, noted: Mapping[str, str]) -> Object:
    selector = labels.role(cluster.name, "accounting")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, names.accounting(cluster.name), "accounting"),
        "spec": {
            "serviceName": names.nodes_service(cluster.name),
            "replicas": 1,
            "podManagementPolicy": "Parallel",  # with the ordered policy, a pod that cannot start would never be replaced by its corrected successor
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {"labels": labels.recommended(selector), "annotations": dict(noted)},
                    "spec": _pod(cluster, defaults),
                },
                cluster.spec.accounting_or_default.slurmdbd.pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    claim = cluster.spec.accounting_or_default.archive.claim_name
    return pod.reads_secrets(pod.base(cluster, defaults, cluster.spec.accounting_or_default.slurmdbd.scheduling)) | {
        "initContainers": [
            *([_own_archive(cluster, defaults)] if claim else []),
            *per_node_root.users_of_the_image(cluster, defaults),
            *pod.munged(cluster, defaults),
            *sssd.sidecar(cluster, defaults),
            identity(cluster, defaults),
        ],
        "containers": [_container(cluster, defaults)],
        "volumes": [
            pod.config_map("config", names.accounting(cluster.name)),
            _secret(storage(cluster)),
            pod.claim("archive", claim) if claim else pod.empty("archive", sizeLimit="64Mi"),
            pod.empty("jail", sizeLimit=pod.SMALL)
            if cluster.spec.jail.per_node
            else pod.claim("jail", jail_claim(cluster)),
            pod.empty("users", sizeLimit=pod.LARGE),
            *pod.scratch(),
            *sssd.volumes(cluster),
            pod.keys(names.auth_key(cluster.name), names.jwt_key(cluster.name)),
            *(volume for volume in pod.auth_volumes(cluster) if volume["name"] != "keys"),
        ],
    }


def _container(cluster: Cluster, defaults: Defaults) -> Object:
    image = pod.slurm_image(cluster, defaults)
    munge = pod.munge_socket() if cluster.spec.auth.type == "munge" else []
    return pod.container(cluster, "slurmdbd", image, cluster.spec.accounting_or_default.slurmdbd.resources) | {
        "args": ["slurmdbd"],
        "env": pod.env(SOPERATOR_AUTH=cluster.spec.auth.type),
        "ports": [{"name": "slurmdbd", "containerPort": names.DBD_PORT}],
        "securityContext": pod.unprivileged(pod.SLURM_UID),
        "volumeMounts": [
            pod.mount("config", _GIVEN, readOnly=True),
            pod.mount("database", SECRET, readOnly=True),
            pod.mount("archive", ARCHIVE),
            pod.mount("users", "/var/lib/extrausers", readOnly=True),
            pod.mount("run", "/run/slurmdbd"),
            pod.mount("host-tmp", "/tmp"),
            *sssd.mounts(cluster),
            *pod.key_mounts(),
            *munge,
        ],
        "readinessProbe": {
            "exec": {"command": ["/usr/lib/soperator/accounting"]},
            "periodSeconds": 5,
            "failureThreshold": 3,
            "timeoutSeconds": 5,
        },
    }


def _own_archive(cluster: Cluster, defaults: Defaults) -> Object:
    """Return the init container that gives the archive to slurmdbd's user, as for slurmctld's state."""
    return pod.container(cluster, "own-archive", pod.slurm_image(cluster, defaults), Resources()) | {
        "command": ["chown", f"{pod.SLURM_UID}:{pod.SLURM_UID}", ARCHIVE],
        "securityContext": pod.file_maker("CHOWN"),
        "volumeMounts": [pod.mount("archive", ARCHIVE)],
    }


def _secret(at: Storage) -> Object:
    """Return the Secrets of the database as files of one folder."""
    items = [(at.password.secret_name, at.password.key, PASSWORD)]
    items += [(at.ca.secret_name, at.ca.key, "ca.crt")] if at.ca else []
    items += [(at.certificate, name, name) for name in ("tls.crt", "tls.key")] if at.certificate else []
    sources = [{"secret": {"name": name, "items": [{"key": key, "path": path}]}} for name, key, path in items]
    return {"name": "database", "projected": {"sources": sources, "defaultMode": pod.GROUP_READS}}


def service(cluster: Cluster, name: str, role: str, of: str, port: int) -> Object:
    """Return a Service that routes to its pod only while the pod is ready, so that a successful connection means that the database also answers."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, name, role),
        "spec": {
            "selector": labels.role(cluster.name, role),
            "ports": [{"name": of, "port": port, "targetPort": port}],
        },
    }
