"""Who reaches whom, as a network plugin would read the policies."""

import pytest

from soperator.api.cluster import SlurmClusterSpec
from soperator.render import labels
from soperator.render.model import Cluster
from soperator.render.network import render_network

CLUSTER = Cluster("slurm", "demo", "1", SlurmClusterSpec())
POLICIES = [each for each in render_network(CLUSTER) if each["kind"] == "NetworkPolicy"]
OPERATOR = {"app.kubernetes.io/name": "soperator"}
STRANGER = {"app": "other"}


def of(role):
    """The labels of a pod."""
    return labels.worker("demo", "gpu") if role == "worker" else labels.role("demo", role)


def matches(selector, pod):
    """Whether a label selector of ours chooses a pod."""
    return selector["matchLabels"].items() <= pod.items()


def lets_in(rule, source, port):
    """Whether one rule of a policy lets a pod in: by its labels, whatever its namespace, and by the port."""
    peers, ports = rule.get("from"), rule.get("ports")
    known = peers is None or any(matches(each["podSelector"], source) for each in peers)
    return known and (ports is None or any(each["port"] <= port <= each.get("endPort", each["port"]) for each in ports))


def reaches(source, target, port):
    """Whether a TCP connection is let through: policies that choose the target are added up."""
    chosen = [each["spec"] for each in POLICIES if matches(each["spec"]["podSelector"], target)]
    assert chosen
    return any(lets_in(rule, source, port) for spec in chosen for rule in spec["ingress"])


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


def test_hosts_outside_reach_what_the_clusters_own_pods_do():
    """By their networks, on the high ports alone; without any there is no such rule."""
    spec = SlurmClusterSpec.model_validate({"outside": {"networks": ["192.0.2.7/24"]}})
    made = {each["metadata"]["name"]: each["spec"] for each in render_network(Cluster("slurm", "demo", "1", spec))}
    rules = [each for each in made["demo-inside"]["ingress"] if {"ipBlock": {"cidr": "192.0.2.0/24"}} in each["from"]]
    assert [{each["port"] for each in rule["ports"]} for rule in rules] == [{1024}]
    assert "ipBlock" not in str(POLICIES)
