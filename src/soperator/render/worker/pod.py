"""Workers: pods that a NodeSet owns directly, one for each Slurm node.

slurmd runs as root of the pod's own user namespace, with SYS_ADMIN only there, because it needs mounts but not the machine. The pod is protected from
eviction from its creation on. A hash of everything except the index distinguishes an outdated pod from a current one.
"""

import hashlib
import json

from soperator.api.fields.change import seconds
from soperator.render.jail import (
    gpu_driver,
    gres,
    jail_watch,
    mount_plan,
    mount_points,
    per_node_root,
    submounts,
)
from soperator.render.parts import (
    capabilities,
    labels,
    names,
    pod,
    sssd,
    strategic_merge,
)
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.slurm_conf import health_checks, topology
from soperator.render.slurm_conf.node_conf import node_conf, without_record_fields
from soperator.render.worker import job_usage

#: slurmd writes its pid after it has fetched its configuration. A connection to its port would be an error in its log, and Slurm itself monitors it:
#: so it has no readiness probe, which would also delay a node by up to its period.
_HAS_STARTED: Object = {
    "exec": {"command": ["sh", "-c", "kill -0 $(cat /tmp/slurmd.pid)"]},
    "periodSeconds": 1,
    "failureThreshold": 600,
    "timeoutSeconds": 5,
}
#: sshd runs in slurmd's container: what a session does counts as the node's work, and it reaches the namespaces of the jobs.
_SSH_PORT: Object = {"name": "ssh", "containerPort": names.SSH_PORT}
_SSH_MOUNTS = [
    pod.mount("hostkeys", "/etc/soperator/hostkeys", readOnly=True),
    pod.mount("ssh", "/etc/soperator/ssh", readOnly=True),
]
#: What waits until the node is drained (images/slurm), and the seconds in which slurmd ends then.
_GIVEWAY, _TO_END = "/usr/lib/soperator/giveway", 30
#: The spool of slurmd, in which a job may write: a file system with a size. Full, it costs a drained node, and on the disk an evicted pod.
_SPOOL: Object = {"medium": "Memory", "sizeLimit": "256Mi"}
_GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}


def render_worker(cluster: Cluster, nodeset: NodeSet, index: int, defaults: Defaults, template: str = "") -> Object:
    """Return the pod of the Slurm node `<nodeset>-<index>`; `template` is the template's hash, if the caller already has it."""
    made = topology.together(cluster, nodeset, _pod(cluster, nodeset, index, defaults))
    made["metadata"]["annotations"][labels.TEMPLATE] = template or template_hash(cluster, nodeset, defaults)
    made["metadata"]["ownerReferences"] += (
        cluster.anchored
    )  # not a part of the template: a new anchor makes no new pods
    return made


def template_hash(cluster: Cluster, nodeset: NodeSet, defaults: Defaults) -> str:
    """Return a hash of everything that all pods of the NodeSet have in common, and that only a new pod can have."""
    made = _pod(cluster, without_record_fields(cluster, nodeset), 0, defaults)
    text = json.dumps(made, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def render_plan(cluster: Cluster, nodeset: NodeSet) -> Object:
    """Return the ConfigMap with the mount plan of the NodeSet's nodes.

    It never changes: a new plan gets a new ConfigMap, so that a node keeps the plan of its pod.
    """
    text = mount_plan.text(mount_plan.worker_plan(cluster, nodeset))
    meta = {
        "name": plan_name(cluster, nodeset),
        "namespace": nodeset.namespace,
        "labels": labels.recommended(labels.worker(cluster.name, nodeset.name)),
        "ownerReferences": [nodeset.owner],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"plan": text}, "immutable": True}


def plan_hash(cluster: Cluster, nodeset: NodeSet) -> str:
    """Return the mount plan's short name, which each pod carries as an annotation."""
    return mount_plan.short(mount_plan.text(mount_plan.worker_plan(cluster, nodeset)))


def plan_name(cluster: Cluster, nodeset: NodeSet) -> str:
    """Return the name of the ConfigMap with the mount plan."""
    return names.jail_plan(cluster.name, nodeset.name, plan_hash(cluster, nodeset))


def _pod(cluster: Cluster, nodeset: NodeSet, index: int, defaults: Defaults) -> Object:
    image = nodeset.spec.image or pod.slurm_image(cluster, defaults)
    metadata: Object = {
        "name": names.worker_pod(cluster.name, nodeset.name, index),
        "namespace": nodeset.namespace,
        "labels": labels.recommended(labels.worker(cluster.name, nodeset.name))
        | {labels.INDEX: str(index), labels.PROTECTED: "true"},
        "annotations": {labels.SAFE_TO_EVICT: "false", labels.PLAN: plan_hash(cluster, nodeset), labels.IMAGE: image},
        "ownerReferences": [nodeset.owner],
    }
    spec = _spec(cluster, nodeset, index, defaults)
    if way := nodeset.spec.preemptible:
        metadata["annotations"] |= {labels.GIVES_WAY: "true"}
        spec["terminationGracePeriodSeconds"] = int(seconds(way.grace_period)) + _TO_END
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return strategic_merge.strategic(made, nodeset.spec.pod_template)


def _spec(cluster: Cluster, nodeset: NodeSet, index: int, defaults: Defaults) -> Object:
    base = pod.base(cluster, defaults, nodeset.spec.scheduling)
    if cluster.spec.auth.type == "munge":
        base = pod.reads_secrets(base)
    return base | {
        "tolerations": [*base.get("tolerations", []), *_tolerations(nodeset)],
        **topology.selector(nodeset, base.get("nodeSelector", {})),
        "hostname": names.slurm_node(nodeset.name, index),
        "hostUsers": not cluster.spec.security.user_namespace,
        "restartPolicy": "Always",
        "topologySpreadConstraints": [_spread(cluster, nodeset)],
        "initContainers": [
            *pod.munged(cluster, defaults),
            *sssd.sidecar(cluster, defaults),
            *per_node_root.init_containers(cluster, defaults, mount_points.own_points(cluster, [nodeset])),
            *gpu_driver.init_containers(cluster, nodeset, defaults),
        ],
        "containers": [
            _slurmd(cluster, nodeset, index, defaults),
            jail_watch.container(cluster, nodeset, defaults),
            *job_usage.containers(cluster, nodeset, defaults),
        ],
        "volumes": [
            {"name": "plan", "configMap": {"name": plan_name(cluster, nodeset)}},
            *per_node_root.volumes(cluster),
            pod.empty("spool", **_SPOOL),
            pod.users_files(nodeset.spec.tmp_size),
            *pod.scratch(),
            *submounts.volumes(submounts.of_worker(cluster, nodeset)),
            *gpu_driver.volumes(nodeset),
            *health_checks.volumes(cluster, nodeset),
            *job_usage.volumes(cluster),
            *(_ssh_volumes(cluster) if nodeset.spec.ssh else []),
            *nodeset.spec.volumes,
            *_devices(nodeset),
            *sssd.volumes(cluster),
            *pod.auth_volumes(cluster, pod.ROOT_READS),
        ],
    }


def _tolerations(nodeset: NodeSet) -> list[Object]:
    """Return the tolerations of workers. Kubernetes deletes a pod without a toleration of NoExecute at once, or after a network failure of five
    minutes, with its job.

    Slurm may know more than Kubernetes about a Node that does not answer, so its workers stay (`nodeFailure` replaces them). On a Node with a taint
    for maintenance they are drained first. The scheduler places no new pod there, because both taints come with NoSchedule or a cordon.
    """
    keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", *nodeset.spec.maintenance.taints]
    return [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in keys]


def _spread(cluster: Cluster, nodeset: NodeSet) -> Object:
    """Return the constraint that spreads the workers of a NodeSet over different Nodes as far as possible, because users expect two nodes to be
    two machines.
    """
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels.worker(cluster.name, nodeset.name)},
    }


def _slurmd(cluster: Cluster, nodeset: NodeSet, index: int, defaults: Defaults) -> Object:
    image = nodeset.spec.image or pod.slurm_image(cluster, defaults)
    devices = [pod.mount("infiniband", "/dev/infiniband")] if nodeset.spec.rdma.infiniband else []
    ssh = nodeset.spec.ssh
    made = pod.container(cluster, "slurmd", image, nodeset.spec.resources) | {
        "args": ["slurmd"],
        "env": pod.env(
            SOPERATOR_AUTH=cluster.spec.auth.type,
            SOPERATOR_CONTROLLER=pod.controller_address(cluster),
            SOPERATOR_NODE_NAME=names.slurm_node(nodeset.name, index),
            SOPERATOR_NODE_CONF=node_conf(nodeset),
            **({"SOPERATOR_SSH": "true", "SOPERATOR_NODES": pod.nodes_domain(cluster, defaults)} if ssh else {}),
            **({"SOPERATOR_ON_DEMAND": "true"} if nodeset.spec.power_saving else {}),
            **({"SOPERATOR_LIMITS": "Cgroup"} if cluster.spec.jobs.limits == "Cgroup" else {}),
        )
        + gpu_driver.environment(nodeset)
        + gres.environment(cluster, nodeset)
        + job_usage.environment(cluster)
        + pod.wide_ids(cluster),
        "ports": [{"name": "slurmd", "containerPort": names.SLURMD_PORT}, *([_SSH_PORT] if ssh else [])],
        "securityContext": pod.jail_maker(
            *capabilities.ACCOUNTANT, *(capabilities.BINDER if cluster.spec.jobs.bind_cpus else ())
        ),
        "volumeMounts": [
            pod.mount("jail", pod.JAIL),
            pod.mount("plan", "/etc/soperator/jail", readOnly=True),
            pod.mount("spool", "/var/spool/slurmd"),
            pod.mount("tmp", "/mnt/tmp"),
            *pod.scratch_mounts(),
            *submounts.mounts(submounts.of_worker(cluster, nodeset)),
            *gpu_driver.mounts(nodeset),
            *health_checks.mounts(cluster),
            *job_usage.mounts(cluster),
            *(_SSH_MOUNTS if ssh else []),
            *nodeset.spec.volume_mounts,
            *devices,
            *sssd.mounts(cluster),
            *pod.auth_mounts(cluster),
        ],
        "startupProbe": _HAS_STARTED,
        **({"lifecycle": {"preStop": {"exec": {"command": [_GIVEWAY]}}}} if nodeset.spec.preemptible else {}),
    }
    return _with_devices(made, nodeset)


def _ssh_volumes(cluster: Cluster) -> list[Object]:
    root = [{"key": "authorized_keys_root", "path": "authorized_keys_root"}]
    return [
        {"name": "hostkeys", "secret": {"secretName": names.host_keys(cluster.name), "defaultMode": 0o400}},
        {"name": "ssh", "configMap": {"name": names.login(cluster.name), "items": root}},
    ]


def _with_devices(container: Object, nodeset: NodeSet) -> Object:
    """Return the container with limits for GPUs and RDMA devices; for extended resources Kubernetes sets the request to the limit."""
    gpu = nodeset.spec.gpu
    devices = dict(nodeset.spec.rdma.resources)
    if gpu.vendor != "None":
        devices[gpu.resource_name or _GPU_RESOURCES[gpu.vendor]] = str(gpu.count)
    if not devices:
        return container
    resources = container.get("resources", {})
    return container | {"resources": resources | {"limits": {**resources.get("limits", {}), **devices}}}


def _devices(nodeset: NodeSet) -> list[Object]:
    if not nodeset.spec.rdma.infiniband:
        return []
    return [{"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}}]
