"""Parts of pods that all roles share, so that every pod has the same isolation.

Every pod has no Kubernetes credentials, the runtime's default seccomp profile, a host name in the cluster's headless Service, and a search domain
that resolves the bare names of all nodes. The file of a role has its other needs.
"""

from typing import Any

from soperator.api.common import Resources, Scheduling
from soperator.render.parts import capabilities as parts_capabilities
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, Defaults, Object

SLURM_UID = 64030
REST_UID = 64031
MUNGE_UID = 64032
DATABASE_UID = 64034
PROXY_UID = 64035
AGENT_UID = 65532

_IDS = 65536

#: Modes of a Secret's files, which belong to root and to group 0. A user of a job may belong to group 0, so where slurmd or sshd runs nobody but
#: root reads them. A daemon of another uid reads them by a supplementary group: fsGroup would reach every volume (docs/decisions/0009, 0098).
ROOT_READS, GROUP_READS = 0o400, 0o440

_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

KEYS = "/etc/soperator/keys"
PRIVATE = "/run/soperator"
JAIL = "/mnt/jail"


def metadata(cluster: Cluster, name: str, role: str, owned: bool = True) -> Object:
    """Return the metadata of an object of a role, owned by the cluster unless the object must outlive it."""
    meta: Object = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": labels.recommended(labels.role(cluster.name, role)),
    }
    return meta | ({"ownerReferences": cluster.owners} if owned else {"annotations": {labels.KEEP: "true"}})


def slurm_image(cluster: Cluster, defaults: Defaults) -> str:
    """Return the image of Slurm, by which the operator observes the progress of an upgrade; a NodeSet may have its own image."""
    return cluster.spec.images.slurm or defaults.slurm


def base(cluster: Cluster, defaults: Defaults, scheduling: Scheduling) -> Object:
    """Return the pod spec without containers and volumes."""
    spec: Object = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "subdomain": names.nodes_service(cluster.name),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "dnsConfig": {
            "searches": [nodes_domain(cluster, defaults)],
        },
        "terminationGracePeriodSeconds": 30,
    }
    if cluster.spec.images.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in cluster.spec.images.pull_secrets]
    return spec | _scheduling(scheduling)


def leaving_lost_nodes(spec: Object) -> Object:
    """Return the pod spec with tolerations that evict the pod from a lost Node after 15 s instead of 300 s, unless it sets tolerations.

    They suit pods without state.
    """
    own = spec.get("tolerations", [])
    lost = [key for key in _LOST if not any(each.get("key") in (None, "", key) for each in own)]
    added = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 15} for key in lost]
    return spec | {"tolerations": [*own, *added]}


def nodes_domain(cluster: Cluster, defaults: Defaults) -> str:
    """Return the DNS domain in which every pod of the cluster has its host name."""
    return f"{names.nodes_service(cluster.name)}.{cluster.namespace}.svc.{defaults.cluster_domain}"


def container(cluster: Cluster, name: str, image: str, resources: Resources) -> Object:
    """Return a container with its image and resources."""
    made: Object = {
        "name": name,
        "image": image,
        "imagePullPolicy": cluster.spec.images.pull_policy,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    size = {
        key: dict(value) for key, value in (("requests", resources.requests), ("limits", resources.limits)) if value
    }
    return {**made, "resources": size} if size else made


def unprivileged(uid: int) -> Object:
    """Return the security context of a container that needs no rights."""
    return {
        "runAsUser": uid,
        "runAsGroup": uid,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def jail_maker(*more: str) -> Object:
    """Return the security context of a container that makes mount namespaces: root of the pod's own user namespace, not privileged.

    The runtime's AppArmor profile, on Nodes that have AppArmor, forbids every mount, whatever the capabilities. Kubernetes refuses SYS_ADMIN
    without allowPrivilegeEscalation, and sudo in the jail needs it too.
    """
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": True,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": [*parts_capabilities.JAIL, *parts_capabilities.MAKER, *more]},
        "appArmorProfile": {"type": "Unconfined"},
    }


def file_maker(*capabilities: str) -> Object:
    """Return the security context of a container that is root only to access files."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": [*capabilities]},
    }


def id_count(cluster: Cluster) -> int:
    """Return the first id that no user can have: the size of the pods' user namespaces, if they have one."""
    return cluster.spec.security.id_count if cluster.spec.security.user_namespace else 4294967294


def wide_ids(cluster: Cluster) -> list[Object]:
    """Return the environment that makes a pod's entry script check the size of its user namespace; each has at least 65536 ids."""
    wanted = cluster.spec.security.id_count
    return env(SOPERATOR_IDS=str(wanted)) if cluster.spec.security.user_namespace and wanted > _IDS else []


def env(**values: str) -> list[Object]:
    """Return environment variables, in order."""
    return [{"name": key, "value": value} for key, value in values.items()]


def mount(name: str, path: str, **more: Any) -> Object:
    """Return a volume mount."""
    return {"name": name, "mountPath": path, **more}


def empty(name: str, **more: Any) -> Object:
    """Return a scratch volume of the pod."""
    return {"name": name, "emptyDir": more}


#: Sizes of what daemons write on the Node's disk or in memory; each is many times what was seen. On the disk, the kubelet evicts a pod that is over.
SMALL, LARGE = "64Mi", "1Gi"


def users_files(size: str | None) -> Object:
    """Return the volume of users' temporary files. Above its size the kubelet evicts the whole pod; without a size the Node's disk is the limit."""
    return empty("tmp", **({"sizeLimit": size} if size else {}))


def scratch() -> list[Object]:
    """Return the volumes behind `scratch_mounts`."""
    return [empty("run", medium="Memory", sizeLimit="64Mi"), empty("host-tmp", medium="Memory", sizeLimit="64Mi")]


def scratch_mounts() -> list[Object]:
    """Return the mounts of folders that a root daemon writes to, because its image is read-only: sockets, pid files, temporary files."""
    return [mount("run", "/run"), mount("host-tmp", "/tmp")]


def config_map(name: str, of: str) -> Object:
    """Return a volume with the files of a ConfigMap."""
    return {"name": name, "configMap": {"name": of}}


def claim(name: str, of: str) -> Object:
    """Return a volume with a claim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": of}}


def keys(*secrets: str, mode: int = GROUP_READS) -> Object:
    """Return the volume `keys` with the files of several Secrets."""
    sources = [{"secret": {"name": secret}} for secret in secrets]
    return {"name": "keys", "projected": {"sources": sources, "defaultMode": mode}}


def reads_secrets(spec: Object) -> Object:
    """Return the pod spec with a supplementary group, by which daemons that are not root read Secrets with the mode `GROUP_READS`."""
    return spec | {"securityContext": spec["securityContext"] | {"supplementalGroups": [0]}}


def tcp_probe(port: int, period: int, failures: int) -> Object:
    """Return a probe that succeeds if a port is open."""
    return {"tcpSocket": {"port": port}, "periodSeconds": period, "failureThreshold": failures, "timeoutSeconds": 5}


def munged(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the munged sidecar, if the cluster authenticates with munge."""
    if cluster.spec.auth.type != "munge":
        return []
    sidecar = container(cluster, "munged", cluster.spec.images.munge or defaults.munge, Resources())
    return [
        sidecar
        | {
            "restartPolicy": "Always",
            "args": ["munged"],
            "securityContext": unprivileged(MUNGE_UID),
            "volumeMounts": [*key_mounts("munge-private"), mount("munge", "/run/munge")],
            "startupProbe": {
                "exec": {"command": ["test", "-S", "/run/munge/munge.socket.2"]},
                "periodSeconds": 1,
                "failureThreshold": 60,
            },
        }
    ]


def key_mounts(private: str = "private") -> list[Object]:
    """Return the mounts of the keys, and of a folder in memory into which the entry script copies them for one user, unreadable for others."""
    return [mount("keys", KEYS, readOnly=True), mount(private, PRIVATE)]


def auth_mounts(cluster: Cluster) -> list[Object]:
    """Return the mounts with which a Slurm daemon's container authenticates: the key itself, or munged's socket."""
    if cluster.spec.auth.type == "munge":
        return munge_socket()
    return key_mounts()


def munge_socket() -> list[Object]:
    """Return the mount of the folder with munged's socket for a container that uses munged; only munged writes there."""
    return [mount("munge", "/run/munge", readOnly=True)]


def auth_volumes(cluster: Cluster, mode: int = GROUP_READS) -> list[Object]:
    """Return the volumes that `auth_mounts` and munged need. `mode` is the file mode of the keys; munged is not root and reads them through its
    group.
    """
    mode = GROUP_READS if cluster.spec.auth.type == "munge" else mode
    volumes = [keys(names.auth_key(cluster.name), mode=mode), empty("private", medium="Memory", sizeLimit=SMALL)]
    if cluster.spec.auth.type != "munge":
        return volumes
    munge = [empty("munge-private", medium="Memory", sizeLimit=SMALL), empty("munge", sizeLimit=SMALL)]
    return [*volumes, *munge]


def controller_address(cluster: Cluster) -> str:
    """Return the environment with slurmctld's address for slurmd and sackd."""
    return f"{names.controller(cluster.name)}:{names.CONTROLLER_PORT}"


def _scheduling(scheduling: Scheduling) -> Object:
    parts = {
        "nodeSelector": scheduling.node_selector,
        "tolerations": scheduling.tolerations,
        "affinity": scheduling.affinity,
        "priorityClassName": scheduling.priority_class_name,
    }
    return {key: value for key, value in parts.items() if value}
