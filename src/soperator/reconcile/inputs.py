"""Reads the inputs of the policies from the caches. No function here queries the API server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from soperator.api.base import Problem
from soperator.api.fields.change import seconds
from soperator.api.validation.confinement import cluster_loosened, loosened
from soperator.kube import kinds
from soperator.kube.objects import Job, Node, Service
from soperator.kube.views import ConditionView
from soperator.policy.cluster.conditions import ClusterFacts, Role
from soperator.policy.workers import node_records, power_states
from soperator.policy.workers.from_spec import policy_of
from soperator.policy.workers.types import OnDemand, RecordFields, WorkerPod, WorkerSnapshot
from soperator.reconcile import membership, pod_status, render_record
from soperator.reconcile.cache.per_object import Slot, per_pod
from soperator.reconcile.cache.workers import COLUMNS, WorkerSet
from soperator.reconcile.cluster import accounting, config_files, site_files, topology
from soperator.reconcile.context import Operator
from soperator.render.cluster.objects import with_members
from soperator.render.jail import gres, mount_points
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import job_limits, node_conf
from soperator.render.worker import pod as worker_pod
from soperator.runtime.cache.store import Store
from soperator.slurm.settings.state import ConfigState

#: Pods whose deletion was sent; and when slurmd of a pod was last asked to register, in seconds since 1970.
DELETED: Slot[str, bool] = per_pod("pods that were deleted")
REGISTERED: Slot[str, float] = per_pod("requests to register")


def sized(operator: Operator, cluster: Cluster) -> Cluster:
    """Return the cluster with the values that its configuration takes from its NodeSets; a refused NodeSet counts only if it may have nodes."""
    nodesets = membership.configured(operator, cluster)
    made = with_members(cluster, nodesets, bool(operator.stores.healthchecks_of(cluster.key)))
    made = site_files.with_contents(operator, made)
    if cluster.has_topology:
        sets = [(each, worker_set(operator, each)) for each in nodesets]
        made = replace(made, places=topology.places(operator, made, sets, transaction(operator, cluster)))
    return replace(made, accounted=True) if accounting.is_on(operator, made, transaction(operator, cluster)) else made


def facts(operator: Operator, cluster: Cluster, problems: Sequence[Problem], jail: str) -> ClusterFacts:
    """Return the inputs of the conditions of a cluster."""
    key = cluster.key
    known = operator.namespaces.view(cluster.namespace)
    mine = [each for each in known.nodesets.values() if each.spec.cluster == cluster.name]
    each_role = [
        *(_as_they_are(operator, each) if each.name in known.refused else workers(operator, each) for each in mine),
        *(_as_they_are(operator, each) for each in membership.unreadable(operator, cluster)),
    ]
    return ClusterFacts(
        problems=problems,
        jail=jail,
        points=point_wait(operator, cluster, members(operator, cluster)),
        confined=unconfined(operator, cluster),
        limits=job_limits.shortfall(cluster),
        slurm=operator.slurm.trouble(key),
        controller=_role(operator, cluster, "controller", cluster.spec.controller.replicas),
        rest=_role(operator, cluster, "rest", cluster.spec.rest.replicas),
        login=_role(operator, cluster, "login", cluster.spec.login.replicas),
        workers=_sum(each_role),
    )


def seen(operator: Operator, cluster: Cluster, nodeset: NodeSet, ending: str = "") -> WorkerSnapshot:
    """Return the inputs of the policy for workers; with a reason for a deletion, no worker is desired.

    A pod whose deletion was sent counts as being deleted, although the cache may not show it yet, because its node must not be resumed.
    """
    current = worker_set(operator, nodeset)
    done = {
        each.seen.index: _with_memory(operator, uid, each.seen)
        for uid in (*operator.memory(DELETED), *operator.memory(REGISTERED))
        if (each := current.by_uid.get(uid)) and each.seen
    }
    record = None if ending else _record(cluster, nodeset)
    template = "" if ending else worker_pod.template_hash(cluster, nodeset, operator.defaults)
    return WorkerSnapshot(
        nodeset=nodeset.name,
        wanted=0 if ending else nodeset.spec.replicas,
        template=template,
        pods={**current.seen, **done} if done else current.seen,
        nodes=operator.slurm.nodes(cluster.key),
        machines=current.machines,
        policy=policy_of(nodeset.spec),
        now=operator.wall(),
        ending=ending,
        settled=current.settled.get(template, frozenset()) - done.keys(),
        on_demand=on_demand(nodeset),
        record=record,
        differing=_differing(current, record),
    )


def _record(cluster: Cluster, nodeset: NodeSet) -> RecordFields:
    features = None if node_conf.has_features_plugin(cluster) else frozenset(node_conf.features(nodeset))
    return RecordFields(features, nodeset.spec.weight)


def _differing(current: WorkerSet, wanted: RecordFields | None) -> frozenset[int]:
    """Return the workers whose Slurm node has other features or another weight than the spec."""
    if wanted is None:
        return frozenset()
    wrong = (indexes for shape, indexes in current.by_shape.items() if not node_records.is_as_wanted(shape, wanted))
    return frozenset().union(*wrong)


def on_demand(nodeset: NodeSet) -> OnDemand | None:
    """Return the settings of power saving; None if it is off."""
    said = nodeset.spec.power_saving
    if said is None:
        return None
    return OnDemand(
        least=said.min_nodes,
        most=said.max_nodes,
        idle=seconds(said.suspend_time),
        resume=seconds(said.resume_timeout),
        backoff=seconds(said.retry_after),
        shape=node_conf.shape(nodeset),
    )


def power_wait(operator: Operator, cluster: Cluster, nodeset: NodeSet, seen: WorkerSnapshot) -> str:
    """Return why no node is powered down yet; empty if nodes may power down, or without power saving.

    slurmctld must first run with the settings by which it wakes a node.
    """
    if nodeset.spec.power_saving is None or seen.is_known or running_config(operator, sized(operator, cluster)):
        return ""
    return "slurmctld does not run with the slurm.conf for power saving yet"


def _with_memory(operator: Operator, uid: str, pod: WorkerPod) -> WorkerPod:
    """Return a pod, with this process's own actions that the cache does not show yet. A new process may repeat these actions without harm."""
    return replace(
        pod, deleting=pod.deleting or uid in operator.memory(DELETED), asked=operator.memory(REGISTERED).get(uid, 0.0)
    )


def worker_set(operator: Operator, nodeset: NodeSet) -> WorkerSet:
    """Return the workers of a NodeSet, each with the values that a pass needs."""
    heard, stores = operator.slurm.nodes((nodeset.namespace, nodeset.spec.cluster)), operator.stores
    key = nodeset.key
    return operator.worker_cache.read(key, stores.pods, stores.nodes, heard, nodeset.spec.maintenance)


def workers(operator: Operator, nodeset: NodeSet) -> Role:
    """Return the number of workers that can take jobs: ready in Kubernetes, and up in Slurm's last answer."""
    current = worker_set(operator, nodeset)
    found, troubles = len(current.workers), current.troubles
    if nodeset.spec.power_saving:
        return _awake(current, operator.wall() - seconds(nodeset.spec.power_saving.resume_timeout))
    ready = min(found - len(troubles), nodeset.spec.replicas)
    return Role(
        ready, nodeset.spec.replicas, troubles[0] if troubles else pod_status.missing(nodeset.spec.replicas - found)
    )


def _as_they_are(operator: Operator, nodeset: NodeSet) -> Role:
    """Return the workers of a NodeSet whose spec is refused.

    The operator creates none, the NodeSet's status reports the cause, and the existing ones have to be ready.
    """
    found = len(worker_set(operator, nodeset).workers)
    spec = nodeset.spec.model_copy(update={"replicas": found})
    return workers(operator, replace(nodeset, spec=spec)) if found else Role()


def _awake(current: WorkerSet, late: float) -> Role:
    """Return the counts of a NodeSet with power saving. Only awake nodes count: a node that wakes or goes to sleep is not missing.

    Slurm calls a node awake once its slurmd has registered, and Kubernetes calls the pod ready some seconds later. So an unready pod counts as
    missing only if it is older than `late`.
    """
    awake = [
        each
        for each in current.workers
        if each.slurm is None or power_states.phase_of(each.slurm) is power_states.Phase.AWAKE
    ]
    found = [
        each for each in awake if not (each.seen and each.seen.born > late and pod_status.is_first_start(each.pod))
    ]
    troubles = [each.trouble for each in found if each.trouble]
    return Role(len(found) - len(troubles), len(found), troubles[0] if troubles else "")


def counts(
    operator: Operator, nodeset: NodeSet, seen: WorkerSnapshot | None, former: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the number of workers with the current template, and of workers in each state in Slurm.

    Without an answer of Slurm these are the last known numbers.
    """
    wanted = {
        "desiredReplicas": nodeset.spec.power_saving.min_nodes if nodeset.spec.power_saving else nodeset.spec.replicas
    }
    if seen is None or seen.nodes is None:
        kept = (
            "updatedReplicas",
            *COLUMNS,
            *(("asleep", "waking", "desiredReplicas") if nodeset.spec.power_saving else ()),
        )
        return wanted | {key: former[key] for key in kept if key in former}
    current = worker_set(operator, nodeset)
    asleep = power_states.counts(seen) if seen.on_demand else {}
    return {**wanted, "updatedReplicas": current.templates.get(seen.template, 0), **current.columns, **asleep}


def point_wait(operator: Operator, cluster: Cluster, nodesets: Sequence[NodeSet]) -> str:
    """Return why the jail lacks mount points that these NodeSets and login need; empty if it has all of them."""
    needed = mount_points.points(cluster, nodesets)
    if not needed:
        return ""
    name, targets = names.mount_points(cluster.name), ", ".join(dict.fromkeys(each.target for each in needed))
    job = _job(operator, cluster, name)
    if job is None or job.metadata.annotations.get(labels.FILL) != fill(operator, cluster):
        return f"the jail lacks {targets}"
    if not mount_points.keys(needed) <= set(job.metadata.annotations.get(labels.POINTS, "").split()):
        return f"the jail lacks {targets}"
    if _is_done(operator, job):
        return ""
    found = [pod for pod in operator.stores.pods.by("owner", job.metadata.uid) if pod.status.phase != "Succeeded"]
    detail = pod_status.trouble(found[-1], operator.stores.nodes) if found else ""
    if failed := _failed(job):
        return (
            f"Job {name} could not create the mount points: {detail or failed.message}; "
            "fix the cause, then delete the Job to try again"
        )
    return f"Job {name} creates {targets} in the jail" + (f": {detail}" if detail else "")


def fill(operator: Operator, cluster: Cluster) -> str:
    """Identifies the filling of the jail. A new root lacks the mount points of the former one, while a repair keeps the root."""
    job = _job(operator, cluster, names.populate(cluster.name))
    if job and job.metadata.annotations.get(labels.MODE) == "Missing":
        made = _job(operator, cluster, names.mount_points(cluster.name))
        return made.metadata.annotations.get(labels.FILL, "") if made else job.metadata.uid
    return job.metadata.uid if job else ""


def members(operator: Operator, cluster: Cluster) -> list[NodeSet]:
    """Return the NodeSets of a cluster with accepted specs, oldest first."""
    return operator.namespaces.view(cluster.namespace).members(cluster.name)


def refusal(operator: Operator, cluster: Cluster) -> str:
    """Return why a cluster's spec is refused, as a message; empty if it is accepted.

    The workers of a refused cluster stay unchanged, because their pods follow that spec.
    """
    found = operator.namespaces.view(cluster.namespace).problems(cluster.name)
    return f"SlurmCluster {cluster.name} is refused, so its workers stay unchanged: {found[0]}" if found else ""


def transaction(operator: Operator, cluster: Cluster) -> ConfigState:
    """Return the record of the configuration that slurmctld mounts, from the ConfigMap's annotations."""
    return config_files.state(operator, cluster)


def running_config(operator: Operator, cluster: Cluster) -> str:
    """Return the generation of the configuration that slurmctld runs with, if it is the spec's; otherwise empty."""
    state = transaction(operator, cluster)
    is_wanted = state.good == state.generation and render_record.is_configured(operator, cluster, state.good)
    return state.good if is_wanted else ""


def gpu_wait(operator: Operator, cluster: Cluster, nodeset: NodeSet, seen: WorkerSnapshot) -> str:
    """Return why no worker with GPUs starts yet; empty if none has to start, or if it may.

    slurmctld must first run with the gres.conf that names the GPUs. It drains a slurmd that registers without these lines for having too few GPUs,
    and that drain stays. The same holds for lines of the user's own.
    """
    if not gres.has_gpus(nodeset.spec):
        return ""
    begins = not seen.pods or any(each.template != seen.template for each in seen.pods.values())
    if seen.on_demand and power_states.are_of_shape(seen):
        return ""  # slurmctld refuses a record of a node whose GPUs are not in its gres.conf
    if not begins or running_config(operator, sized(operator, cluster)):
        return ""
    return "slurmctld does not run with the gres.conf of the NodeSet's GPUs yet"


def unconfined(operator: Operator, cluster: Cluster) -> tuple[str, str]:
    """Return the reason of the condition Confined, and why root in the jail may be root on the Node too; empty if it cannot be."""
    walls = [
        *map(str, cluster_loosened(cluster.spec)),
        *(
            f"NodeSet {each.name}: {problem}"
            for each in membership.configured(operator, cluster)
            for problem in loosened(each.spec)
        ),
    ]
    more = [f"and {len(walls) - 3} more"] if len(walls) > 3 else []
    if host := _host_users(operator, cluster):
        return "HostUsers", "; ".join([host, *walls[:3], *more])
    return ("WallDown" if walls else "UserNamespace"), "; ".join([*walls[:3], *more])


def _host_users(operator: Operator, cluster: Cluster) -> str:
    if not cluster.spec.security.user_namespace:
        return "spec.security.userNamespace is false: root in the jail is root on the Node, limited only by its capabilities"
    found = [pod for role in ("login", "worker") for pod in operator.stores.role_pods(cluster.key, role)]
    if dropped := next((pod.metadata.name for pod in found if pod.spec.host_users), ""):
        return (
            f"the API server dropped hostUsers from pod {dropped}: "
            "enable the feature gate UserNamespacesSupport, or set spec.security.userNamespace to false"
        )
    return ""


def exporter(operator: Operator, cluster: Cluster) -> Role | None:
    """Return whether the exporter's pod is ready; None if the spec has no exporter."""
    return _role(operator, cluster, "exporter", 1) if cluster.spec.metrics.exporter else None


def is_rest_ready(operator: Operator, cluster: Cluster) -> bool:
    """Return whether slurmrestd can answer: it has a ready pod."""
    found = operator.stores.children[kinds.DEPLOYMENT].get(cluster.namespace, names.rest(cluster.name))
    return bool(found and found.status.ready_replicas)


def address(operator: Operator, cluster: Cluster) -> str:
    """Return the ssh command of the login nodes, as far as their address is known."""
    service = operator.stores.children[kinds.SERVICE].get(cluster.namespace, names.login(cluster.name))
    host, port = _host_port(service, operator) if service else ("", 0)
    return f"ssh -p {port} root@{host}" if host and port else ""


def _job(operator: Operator, cluster: Cluster, name: str) -> Job | None:
    found: Job | None = operator.stores.children[kinds.JOB].get(cluster.namespace, name)
    return found


def _is_done(operator: Operator, job: Job) -> bool:
    done = any(each.type == "Complete" and each.status == "True" for each in job.status.conditions)
    pods_of_job = operator.stores.pods.by("owner", job.metadata.uid)
    return done or any(pod.status.phase == "Succeeded" for pod in pods_of_job)  # a Job says so some seconds later


def _failed(job: Job) -> ConditionView | None:
    return next((each for each in job.status.conditions if each.type == "Failed" and each.status == "True"), None)


def _host_port(service: Service, operator: Operator) -> tuple[str, int]:
    port = next(iter(service.spec.ports), None)
    if port is None:
        return "", 0
    ingress = next(iter(service.status.load_balancer.ingress), None)
    if ingress:
        return ingress.ip or ingress.hostname, port.port
    if port.node_port:
        return _node_address(operator.stores.nodes), port.node_port
    return service.spec.cluster_ip, port.port


def _node_address(nodes: Store[Node]) -> str:
    """Return the address of the first ready Node, or of the first Node if none is ready."""
    for wanted in (True, False):
        for node in nodes.all():
            known = {each.type: each.address for each in node.status.addresses}
            if pod_status.is_node_ready(node) is wanted and (
                found := known.get("ExternalIP") or known.get("InternalIP")
            ):
                return found
    return ""


def _role(operator: Operator, cluster: Cluster, role: str, wanted: int) -> Role:
    found = pod_status.role(operator.stores.role_pods(cluster.key, role), wanted, operator.stores.nodes)
    return replace(found, trouble=_scaled(operator, cluster, role) or found.trouble) if not found.ready else found


def _scaled(operator: Operator, cluster: Cluster, role: str) -> str:
    """Return the workloads that have no pod because somebody scaled them to zero; empty if there are none."""
    name, children = f"{cluster.name}-{role}", operator.stores.children
    for kind in (kinds.STATEFULSET, kinds.DEPLOYMENT):
        found = children[kind].get(cluster.namespace, name)
        if found and not found.spec.replicas:
            return f"its {kind} {name} has 0 replicas"
    return ""


def _sum(roles: Sequence[Role]) -> Role:
    troubles = [each.trouble for each in roles if each.is_short and each.trouble]
    return Role(sum(each.ready for each in roles), sum(each.wanted for each in roles), troubles[0] if troubles else "")
