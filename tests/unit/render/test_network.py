"""Who reaches whom, as a network plugin would read the policies."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.network import render_network
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster

CLUSTER = Cluster("slurm", "demo", "1", SlurmClusterSpec())
POLICIES = [each for each in render_network(CLUSTER, "soperator-system") if each["kind"] == "NetworkPolicy"]
OPERATOR = {"app.kubernetes.io/name": "soperator"}
#: The namespace of a source that is not the cluster's, where a test does not say another one.
ELSEWHERE = "soperator-system"
STRANGER = {"app": "other"}


def of(role):
    """The labels of a pod."""
    return labels.worker("demo", "gpu") if role == "worker" else labels.role("demo", role)


def matches(selector, pod):
    """Whether a label selector of ours chooses a pod."""
    without = selector.get("matchExpressions", [])
    assert all(each["operator"] == "NotIn" for each in without)
    is_left_out = any(pod.get(each["key"]) in each["values"] for each in without)
    return selector.get("matchLabels", {}).items() <= pod.items() and not is_left_out


def is_peer(peer, source, namespace):
    """Whether a peer of a rule is a pod of a namespace; without a selector of namespaces it is one of the cluster's own namespace."""
    where = peer.get("namespaceSelector", {"matchLabels": {"kubernetes.io/metadata.name": "slurm"}})
    return matches(where, {"kubernetes.io/metadata.name": namespace}) and matches(peer.get("podSelector", {}), source)


def lets_in(rule, source, namespace, port):
    """Whether one rule of a policy lets a pod in: by its labels, its namespace, and by the port."""
    peers, ports = rule.get("from"), rule.get("ports")
    known = peers is None or any(is_peer(each, source, namespace) for each in peers)
    return known and (ports is None or any(each["port"] <= port <= each.get("endPort", each["port"]) for each in ports))


def reaches(source, target, port, namespace="", policies=POLICIES):
    """Whether a TCP connection is let through: policies that choose the target are added up."""
    namespace = namespace or ("slurm" if labels.CLUSTER in source else ELSEWHERE)
    chosen = [each["spec"] for each in policies if matches(each["spec"]["podSelector"], target)]
    assert chosen
    return any(lets_in(rule, source, namespace, port) for spec in chosen for rule in spec["ingress"])


@pytest.mark.parametrize("role", ["login", "worker"])
def test_users_reach_a_workers_sshd_from_login_and_from_other_workers(role):
    """And everything else there, whatever the port."""
    assert reaches(of(role), of("worker"), 22)
    assert reaches(of(role), of("worker"), 40000)


@pytest.mark.parametrize(
    "source", [of("controller"), of("rest"), OPERATOR, STRANGER], ids=["controller", "rest", "operator", "stranger"]
)
def test_nobody_else_reaches_a_workers_sshd(source):
    """Neither a daemon's pod of the cluster nor one from outside."""
    assert not reaches(source, of("worker"), 22)


def test_slurm_talks_to_slurm():
    """slurmctld reaches slurmd and any srun, slurmd and clients slurmctld, slurmrestd slurmctld, the operator slurmrestd alone."""
    assert reaches(of("controller"), of("worker"), 6818)
    assert reaches(of("controller"), of("login"), 45678)
    assert reaches(of("worker"), of("controller"), 6817)
    assert reaches(of("rest"), of("controller"), 6817)
    assert reaches(OPERATOR, of("rest"), 6820)
    assert not reaches(OPERATOR, of("controller"), 6817)


def test_from_outside_only_ssh_to_login():
    """A pod of somebody else's gets to no other port."""
    assert reaches(STRANGER, of("login"), 22)
    for role in ("login", "worker", "controller", "rest"):
        for port in (6817, 6818, 6820, 40000):
            assert not reaches(STRANGER, of(role), port), (role, port)


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("role", ["login", "worker", "controller", "rest", "accounting", "rest-users"])
def test_no_pod_of_the_cluster_reaches_the_operators_slurmrestd(role, users):
    """Whether users have a slurmrestd of their own or not: its connections are the operator's, and the exporter's where there is one."""
    spec = {"rest": {"users": {}} if users else {}, "metrics": {"exporter": {}}}
    cluster = Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate(spec))
    policies = [each for each in render_network(cluster, ELSEWHERE) if each["kind"] == "NetworkPolicy"]
    assert not reaches(of(role), of("rest"), 6820, policies=policies)
    assert reaches(of("exporter"), of("rest"), 6820, policies=policies)
    assert not reaches(of("exporter"), of("rest"), 6820)


@pytest.mark.parametrize("target", ["rest", "worker", "controller"])
def test_a_pod_that_calls_itself_the_operator_is_not_let_in(target):
    """The operator's label is anybody's to give: from another namespace, the cluster's own among them, it opens nothing."""
    port = 6820 if target == "rest" else 6822
    assert reaches(OPERATOR, of(target), port)
    assert not reaches(OPERATOR, of(target), port, namespace="tenant")
    assert not reaches(OPERATOR, of(target), port, namespace="slurm")


def test_hosts_outside_reach_what_the_clusters_own_pods_do():
    """By their networks, on the high ports alone; without any there is no such rule."""
    spec = SlurmClusterSpec.model_validate({"externalNodes": {"cidrs": ["192.0.2.7/24"]}})
    made = {each["metadata"]["name"]: each["spec"] for each in render_network(Cluster("slurm", "demo", "1", spec))}
    rules = [each for each in made["demo-inside"]["ingress"] if {"ipBlock": {"cidr": "192.0.2.0/24"}} in each["from"]]
    assert [{each["port"] for each in rule["ports"]} for rule in rules] == [{1024}]
    assert "ipBlock" not in str(POLICIES)
