"""Names and walls: the headless Service behind every host name, the NetworkPolicies, and the budget over protected workers."""

from soperator.render import labels, names, pod
from soperator.render.model import Cluster, Object


def render_network(cluster: Cluster) -> list[Object]:
    """The headless Service, the NetworkPolicies and the workers' PodDisruptionBudget."""
    return [_nodes_service(cluster), *_policies(cluster), _worker_budget(cluster)]


def _nodes_service(cluster: Cluster) -> Object:
    """Names resolve before a pod is ready, for a daemon becomes ready by talking to others."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.nodes_service(cluster.name), "nodes"),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels.cluster(cluster.name)},
    }


def _policies(cluster: Cluster) -> list[Object]:
    """Pods of a cluster talk to each other on any high port, for srun listens on a random one, and where users are on any at all: a worker's sshd is
    reached from login and other workers only. From outside come SSH to login, and the operator to REST and to what workers
    say of their jail, and slurmctld's pod of its state.
    """
    high = [{"port": 1024, "endPort": 65535, "protocol": protocol} for protocol in ("TCP", "UDP")]
    inside = {"from": [{"podSelector": {"matchLabels": labels.cluster(cluster.name)}}], "ports": high}
    users = {
        "from": [{"podSelector": {"matchLabels": labels.role(cluster.name, role)}} for role in ("login", "worker")]
    }
    ssh = {"ports": [{"port": names.SSH_PORT, "protocol": "TCP"}]}
    operator = {
        "from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "soperator"}}}],
        "ports": [{"port": names.REST_PORT, "protocol": "TCP"}],
    }
    asked = operator | {"ports": [{"port": names.JAIL_PORT, "protocol": "TCP"}]}
    return [
        _policy(cluster, f"{cluster.name}-inside", labels.cluster(cluster.name), inside, users),
        _policy(cluster, names.login(cluster.name), labels.role(cluster.name, "login"), ssh),
        _policy(cluster, names.rest(cluster.name), labels.role(cluster.name, "rest"), operator),
        _policy(cluster, names.workers(cluster.name), labels.role(cluster.name, "worker"), asked),
        _policy(cluster, names.controller(cluster.name), labels.role(cluster.name, "controller"), asked),
    ]


def _policy(cluster: Cluster, name: str, selector: dict[str, str], *rules: Object) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": pod.metadata(cluster, name, "network"),
        "spec": {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [*rules]},
    }


def _worker_budget(cluster: Cluster) -> Object:
    """No protected worker may be evicted; a worker loses the label only when Slurm has drained it."""
    selector = labels.role(cluster.name, "worker") | {labels.PROTECTED: "true"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(cluster, names.workers(cluster.name), "worker"),
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": selector}},
    }
