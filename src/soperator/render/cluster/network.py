"""The network of a cluster: the headless Service behind every host name, the Services for clients outside, the NetworkPolicies, and the
PodDisruptionBudget of protected workers. They are in one module, because together they decide who reaches a pod.
"""

from ipaddress import ip_network

from soperator.api.fields.service import ExposedService
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Object


def render_network(cluster: Cluster, operator: str = "") -> list[Object]:
    """Return the headless Service, the NetworkPolicies and the workers' PodDisruptionBudget; `operator` is the operator's namespace, empty if
    unknown.
    """
    return [_nodes_service(cluster), *_policies(cluster, operator), _worker_budget(cluster)]


def _nodes_service(cluster: Cluster) -> Object:
    """Return the headless Service. Its names resolve before a pod is ready, because a daemon must connect to others to become ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.nodes_service(cluster.name), "nodes"),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels.cluster(cluster.name)},
    }


def exposed(cluster: Cluster, name: str, role: str, said: ExposedService, port: Object) -> Object:
    """Return the Service of a role; `port` has the name and the target of its one port."""
    ours: Object = {**port, "port": said.port, **({"nodePort": said.node_port} if said.node_port else {})}
    spec: Object = {"type": said.type, "selector": labels.role(cluster.name, role), "ports": [_ordered(ours)]}
    spec["sessionAffinity"] = said.session_affinity
    if said.type != "ClusterIP":
        spec["externalTrafficPolicy"] = said.external_traffic_policy
    if said.type == "LoadBalancer" and said.load_balancer_source_ranges:
        spec["loadBalancerSourceRanges"] = list(said.load_balancer_source_ranges)
    if said.type == "LoadBalancer" and said.load_balancer_class:
        spec["loadBalancerClass"] = said.load_balancer_class
    if said.ip_family_policy:
        spec["ipFamilyPolicy"] = said.ip_family_policy
    if said.ip_families:
        spec["ipFamilies"] = list(said.ip_families)
    meta = pod.metadata(cluster, name, role)
    meta["labels"] = {**said.labels, **meta["labels"]}
    if said.annotations:
        meta["annotations"] = dict(said.annotations)
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _ordered(port: Object) -> Object:
    """Return a port with its fields in the order in which people write them."""
    return {key: port[key] for key in ("name", "port", "targetPort", "nodePort") if key in port}


def _policies(cluster: Cluster, operator: str) -> list[Object]:
    """Return the NetworkPolicies of a cluster. Its pods reach each other on any high port, because srun listens on a random port. Pods with users
    reach each other on any port: only login pods and other workers reach a worker's sshd. The cluster's hosts outside Kubernetes reach the high
    ports. From elsewhere, SSH reaches login pods, and the operator reaches REST and the reports of workers about their jail and of slurmctld's pod
    about its state. Only the exporter among the cluster's pods reaches the operator's slurmrestd: users have a separate one
    (`render/cluster/user_rest_api.py`), or none.
    """
    high = [{"port": 1024, "endPort": 65535, "protocol": protocol} for protocol in ("TCP", "UDP")]
    outside = [{"ipBlock": {"cidr": str(ip_network(each, strict=False))}} for each in cluster.spec.external_nodes.cidrs]
    inside = {"from": [{"podSelector": {"matchLabels": labels.cluster(cluster.name)}}, *outside], "ports": high}
    users = {
        "from": [{"podSelector": {"matchLabels": labels.role(cluster.name, role)}} for role in ("login", "worker")]
    }
    ssh = {"ports": [{"port": names.SSH_PORT, "protocol": "TCP"}]}
    return [
        _but_for_others(policy(cluster, f"{cluster.name}-inside", labels.cluster(cluster.name), inside, users)),
        policy(cluster, names.login(cluster.name), labels.role(cluster.name, "login"), ssh),
        policy(
            cluster,
            names.rest(cluster.name),
            labels.role(cluster.name, "rest"),
            _operator(names.REST_PORT, operator),
            *_exporter(cluster),
        ),
        policy(cluster, names.workers(cluster.name), labels.role(cluster.name, "worker"), asked(operator)),
        policy(cluster, names.controller(cluster.name), labels.role(cluster.name, "controller"), asked(operator)),
    ]


def asked(operator: str) -> Object:
    """Return the rule by which the operator, in this namespace, reaches a pod's report about its volume."""
    return _operator(names.JAIL_PORT, operator)


def scraped(cluster: Cluster, port: int) -> Object:
    """Return the rule that allows a scrape of a port from every namespace, because the namespace of Prometheus is not known."""
    peers = [*cluster.spec.metrics.allow_from] or [{"namespaceSelector": {}}]
    return {"from": peers, "ports": [{"port": port, "protocol": "TCP"}]}


def render_usage(cluster: Cluster) -> list[Object]:
    """Return the NetworkPolicy for scrapes of the usage of workers' jobs, with the same peers as the exporter's."""
    if not cluster.spec.metrics.jobs:
        return []
    selector = labels.role(cluster.name, "worker")
    return [policy(cluster, names.usage(cluster.name), selector, scraped(cluster, names.USAGE_PORT))]


def _operator(port: int, namespace: str) -> Object:
    """Return the rule that admits the operator by its label *and* its namespace, because everybody who can create pods can give them any label."""
    where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
    source = {"namespaceSelector": where, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "soperator"}}}
    return {"from": [source], "ports": [{"port": port, "protocol": "TCP"}]}


def _but_for_others(made: Object) -> Object:
    """Return the NetworkPolicy without the pods that have their own policy: the database's (`render/cluster/database.py`), and the operator's
    slurmrestd.
    """
    expression = {"key": labels.ROLE, "operator": "NotIn", "values": ["database", "rest"]}
    made["spec"]["podSelector"]["matchExpressions"] = [expression]
    return made


def _exporter(cluster: Cluster) -> list[Object]:
    """Return the rule that admits the exporter to the operator's slurmrestd, which is closed to the cluster's other pods."""
    if cluster.spec.metrics.exporter is None:
        return []
    exporter = {"podSelector": {"matchLabels": labels.role(cluster.name, "exporter")}}
    return [{"from": [exporter], "ports": [{"port": names.REST_PORT, "protocol": "TCP"}]}]


def policy(cluster: Cluster, name: str, selector: dict[str, str], *rules: Object, role: str = "network") -> Object:
    """Return a NetworkPolicy that admits only the rules' peers to the pods of a selector. `role` is the label of the policy."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": pod.metadata(cluster, name, role),
        "spec": {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [*rules]},
    }


def _worker_budget(cluster: Cluster) -> Object:
    """Return the PodDisruptionBudget against evictions of workers with the label PROTECTED; a worker loses it only when its node is drained."""
    selector = labels.role(cluster.name, "worker") | {labels.PROTECTED: "true"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(cluster, names.workers(cluster.name), "worker"),
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": selector}},
    }
