"""slurmctld: a StatefulSet, usually of one pod, with its state on a claim; each pod is behind a Service whose address outlives the pod.

Backups share the claim, on which Slurm's own heartbeat prevents a takeover while the leader is alive. A pod's name is its host name, and determines
its place in slurm.conf.

The identity sidecar copies the users of the jail for slurmctld's name service. slurmctld itself never reads the jail, which users can write and a
storage failure can block.
"""

from soperator.api.common import Resources
from soperator.render.jail import per_node_root
from soperator.render.jail.claims import jail_claim
from soperator.render.jail.mount_plan import ROOT
from soperator.render.parts import (
    labels,
    names,
    pod,
    sssd,
)
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic

_STATE = "/var/spool/slurmctld"
USERS = "/var/lib/extrausers"


def render_controller(cluster: Cluster, defaults: Defaults, fixed: str = "", addresses: int = 0) -> list[Object]:
    """Return the StatefulSet and the Services of slurmctld, and with backups a PodDisruptionBudget.

    `fixed` has the settings that only a restart changes; `addresses` is the minimum number of names that must resolve.
    """
    count = cluster.spec.controller.replicas
    services = [_service(cluster, number) for number in range(max(count, addresses))]
    return [_stateful_set(cluster, defaults, fixed), *services, *([_budget(cluster)] if count > 1 else [])]


def state_claim(cluster: Cluster) -> str:
    """Return the name of the claim with slurmctld's state."""
    return cluster.spec.controller.state.name or names.state_claim(cluster.name)


def _stateful_set(cluster: Cluster, defaults: Defaults, fixed: str) -> Object:
    selector = labels.role(cluster.name, "controller")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, names.controller(cluster.name), "controller"),
        "spec": {
            "serviceName": names.nodes_service(cluster.name),
            "replicas": cluster.spec.controller.replicas,
            "podManagementPolicy": "Parallel",  # with the ordered policy, a pod that cannot start would never be replaced by its corrected successor
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {
                        "labels": labels.recommended(selector),
                        "annotations": {labels.FIXED: fixed, labels.IMAGE: pod.slurm_image(cluster, defaults)},
                    },
                    "spec": _pod(cluster, defaults),
                },
                cluster.spec.controller.pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    spec = pod.reads_secrets(pod.base(cluster, defaults, cluster.spec.controller.scheduling))
    return (
        _apart(cluster)
        | spec
        | {
            "initContainers": [
                _own_state(cluster, defaults),
                *per_node_root.users_of_the_image(cluster, defaults),
                *pod.munged(cluster, defaults),
                *sssd.sidecar(cluster, defaults),
                identity(cluster, defaults),
            ],
            "containers": [_slurmctld(cluster, defaults)],
            "volumes": [
                pod.config_map("config", names.config(cluster.name)),
                pod.claim("state", state_claim(cluster)),
                *users_volumes(cluster),
                *pod.scratch(),
                *sssd.volumes(cluster),
                pod.keys(names.auth_key(cluster.name), names.jwt_key(cluster.name)),
                *(volume for volume in pod.auth_volumes(cluster) if volume["name"] != "keys"),
            ],
        }
    )


def _slurmctld(cluster: Cluster, defaults: Defaults) -> Object:
    image = pod.slurm_image(cluster, defaults)
    munge = pod.munge_socket() if cluster.spec.auth.type == "munge" else []
    return pod.container(cluster, "slurmctld", image, cluster.spec.controller.resources) | {
        "args": ["slurmctld"],
        "env": pod.env(SOPERATOR_AUTH=cluster.spec.auth.type, SOPERATOR_WATCH=str(names.JAIL_PORT)),
        "ports": [{"name": "slurmctld", "containerPort": names.CONTROLLER_PORT}],
        "securityContext": pod.unprivileged(pod.SLURM_UID),
        "volumeMounts": [
            pod.mount("config", "/etc/slurm", readOnly=True),
            pod.mount("state", _STATE),
            pod.mount("users", USERS, readOnly=True),
            pod.mount("run", "/run/slurmctld"),
            pod.mount("host-tmp", "/tmp"),
            *sssd.mounts(cluster),
            *pod.key_mounts(),
            *munge,
        ],
        "startupProbe": pod.tcp_probe(names.CONTROLLER_PORT, 1, 300),
        "readinessProbe": pod.tcp_probe(names.CONTROLLER_PORT, 2, 5),
    }


def _own_state(cluster: Cluster, defaults: Defaults) -> Object:
    """Return the init container that gives the state folder to slurmctld's user: a fresh volume belongs to root, and not every kind of volume
    supports fsGroup.
    """
    image = pod.slurm_image(cluster, defaults)
    return pod.container(cluster, "own-state", image, Resources()) | {
        "command": ["chown", f"{pod.SLURM_UID}:{pod.SLURM_UID}", _STATE],
        "securityContext": pod.file_maker("CHOWN"),
        "volumeMounts": [pod.mount("state", _STATE)],
    }


def identity(cluster: Cluster, defaults: Defaults, interval: str = "0.025") -> Object:
    """Return the sidecar that makes the jail's users known to its pod; it reads the jail at the given interval in seconds."""
    image = cluster.spec.images.agents or defaults.agents
    return pod.container(cluster, "identity", image, Resources()) | {
        "restartPolicy": "Always",
        "command": [
            "python3",
            "-m",
            "soperator.agents.identity",
            "--jail",
            ROOT,
            "--to",
            USERS,
            "--interval",
            interval,
            "--ids",
            str(pod.id_count(cluster)),
        ],
        "securityContext": pod.unprivileged(pod.AGENT_UID),
        "volumeMounts": [pod.mount("jail", pod.JAIL, readOnly=True), pod.mount("users", USERS)],
    }


def users_volumes(cluster: Cluster) -> list[Object]:
    """Return the mounts that the identity sidecar reads and writes."""
    return [
        pod.empty("jail", sizeLimit=pod.SMALL)
        if cluster.spec.jail.per_node
        else pod.claim("jail", jail_claim(cluster)),
        pod.empty("users", sizeLimit=pod.LARGE),
    ]


def _apart(cluster: Cluster) -> Object:
    """Return the affinity that prefers different Nodes for backups; an affinity in the spec replaces it."""
    if cluster.spec.controller.replicas == 1:
        return {}
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": labels.role(cluster.name, "controller")},
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _budget(cluster: Cluster) -> Object:
    """Return the PodDisruptionBudget that allows the eviction of one slurmctld at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(cluster, names.controller(cluster.name), "controller"),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels.role(cluster.name, "controller")}},
    }


def _service(cluster: Cluster, number: int) -> Object:
    selector = labels.role(cluster.name, "controller")
    if number or cluster.spec.controller.replicas > 1:
        selector |= {"statefulset.kubernetes.io/pod-name": names.controller_host(cluster.name, number)}
    port = {"name": "slurmctld", "port": names.CONTROLLER_PORT, "targetPort": names.CONTROLLER_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.controller_address(cluster.name, number), "controller"),
        "spec": {"selector": selector, "ports": [port]},
    }
