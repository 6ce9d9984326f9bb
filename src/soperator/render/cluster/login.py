"""Login pods: sshd inside the jail, and sackd in another container, so that the key is never in a container with users."""

from dataclasses import replace

from soperator.api.common import Resources
from soperator.render.cluster import sshd
from soperator.render.cluster.network import exposed
from soperator.render.jail import (
    mount_plan,
    mount_points,
    per_node_root,
    submounts,
)
from soperator.render.parts import (
    labels,
    names,
    pod,
    sssd,
)
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic


def render_login(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the StatefulSet, Service, ConfigMap and PodDisruptionBudget of login."""
    return [_stateful_set(cluster, defaults), _service(cluster), _config_map(cluster), _budget(cluster)]


def with_cpu(said: Resources) -> Resources:
    """Return the resources with a small CPU request, unless they set CPU: without a request a session gets almost no CPU on a busy Node."""
    if "cpu" in said.requests or "cpu" in said.limits:
        return said
    return said.model_copy(update={"requests": {"cpu": "100m", **said.requests}})


def closed(cluster: Cluster) -> Cluster:
    """Return the cluster without login pods, for the time when nobody may be in the jail."""
    spec = cluster.spec
    return replace(cluster, spec=spec.model_copy(update={"login": spec.login.model_copy(update={"replicas": 0})}))


def _files(cluster: Cluster) -> dict[str, str]:
    return {
        "plan": mount_plan.text(mount_plan.login_plan(cluster)),
        "sshd_config": sshd.config(cluster),
        "soperator-sshd.pam": sshd.pam(cluster),
        "authorized_keys_root": "".join(f"{key.strip()}\n" for key in cluster.spec.login.root_authorized_keys),
    }


def _template_annotations(cluster: Cluster) -> dict[str, str]:
    """Return the annotation with a hash of the files that sshd reads only at its start, so that their change replaces the pod. sshd reads root's
    keys at each login.
    """
    files = _files(cluster)
    return {labels.PLAN: mount_plan.short(files["plan"], files["sshd_config"], files["soperator-sshd.pam"])}


def _config_map(cluster: Cluster) -> Object:
    meta = pod.metadata(cluster, names.login(cluster.name), "login")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": _files(cluster)}


def _stateful_set(cluster: Cluster, defaults: Defaults) -> Object:
    selector = labels.role(cluster.name, "login")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pod.metadata(cluster, names.login(cluster.name), "login"),
        "spec": {
            "serviceName": names.nodes_service(cluster.name),
            "replicas": cluster.spec.login.replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {"labels": labels.recommended(selector), "annotations": _template_annotations(cluster)},
                    "spec": _pod(cluster, defaults),
                },
                cluster.spec.login.pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    return pod.reads_secrets(pod.base(cluster, defaults, cluster.spec.login.scheduling)) | {
        "hostUsers": not cluster.spec.security.user_namespace,
        "initContainers": [
            *per_node_root.init_containers(cluster, defaults, mount_points.own_points(cluster, [])),
            *pod.munged(cluster, defaults),
            *sssd.sidecar(cluster, defaults),
            *_sackd(cluster, defaults),
        ],
        "containers": [_sshd(cluster, defaults)],
        "volumes": [
            {"name": "ssh", "configMap": {"name": names.login(cluster.name), "items": _items(*_SSH_FILES)}},
            {"name": "plan", "configMap": {"name": names.login(cluster.name), "items": _items("plan")}},
            {"name": "hostkeys", "secret": {"secretName": names.host_keys(cluster.name), "defaultMode": 0o400}},
            *per_node_root.volumes(cluster),
            pod.empty("slurm", sizeLimit=pod.SMALL),
            pod.users_files(cluster.spec.login.tmp_size),
            *pod.scratch(),
            *submounts.volumes(submounts.of_login(cluster)),
            *sssd.volumes(cluster),
            *pod.auth_volumes(cluster),
        ],
    }


_SSH_FILES = ("sshd_config", "soperator-sshd.pam", "authorized_keys_root")


def _items(*keys: str) -> list[Object]:
    return [{"key": key, "path": key} for key in keys]


def _sshd(cluster: Cluster, defaults: Defaults) -> Object:
    munge = pod.munge_socket() if cluster.spec.auth.type == "munge" else []
    resources = with_cpu(cluster.spec.login.resources)
    return pod.container(cluster, "sshd", cluster.spec.images.login or defaults.login, resources) | {
        "args": ["sshd"],
        "env": pod.env(SOPERATOR_NODES=pod.nodes_domain(cluster, defaults)) + pod.wide_ids(cluster),
        "ports": [{"name": "ssh", "containerPort": names.SSH_PORT}],
        "securityContext": pod.jail_maker(),
        "volumeMounts": [
            pod.mount("jail", pod.JAIL),
            pod.mount("plan", "/etc/soperator/jail", readOnly=True),
            pod.mount("ssh", "/etc/soperator/ssh", readOnly=True),
            pod.mount("hostkeys", "/etc/soperator/hostkeys", readOnly=True),
            pod.mount("slurm", "/run/slurm"),
            pod.mount("tmp", "/mnt/tmp"),
            *pod.scratch_mounts(),
            *submounts.mounts(submounts.of_login(cluster)),
            *munge,
            *sssd.mounts(cluster),
        ],
        "startupProbe": pod.tcp_probe(names.SSH_PORT, 1, 120),
    }


def _sackd(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the container of sackd, which fetches slurm.conf for the clients and with auth/slurm authenticates them; no user's process runs in
    it.
    """
    made = pod.container(cluster, "sackd", pod.slurm_image(cluster, defaults), Resources())
    return [
        made
        | {
            "restartPolicy": "Always",
            "args": ["sackd"],
            "env": pod.env(SOPERATOR_AUTH=cluster.spec.auth.type, SOPERATOR_CONTROLLER=pod.controller_address(cluster)),
            "securityContext": pod.unprivileged(pod.SLURM_UID),
            "volumeMounts": [pod.mount("slurm", "/run/slurm"), *pod.auth_mounts(cluster)],
        }
    ]


def _service(cluster: Cluster) -> Object:
    port = {"name": "ssh", "targetPort": names.SSH_PORT}
    return exposed(cluster, names.login(cluster.name), "login", cluster.spec.login.service, port)


def _budget(cluster: Cluster) -> Object:
    """Return the PodDisruptionBudget that allows the eviction of one login pod at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(cluster, names.login(cluster.name), "login"),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels.role(cluster.name, "login")}},
    }
