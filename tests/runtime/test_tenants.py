"""What the chart's `tenants.restrict` holds those to who may make our kinds, on a real API server with our CRDs: attempts, each with its control."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.runtime.server import ADMIN, GUEST, ControlPlane
from tests.unit.charts.test_charts import CHARTS, template
from tests.unit.charts.test_charts import helm as helm

Object = dict[str, Any]
Try = Callable[..., str]
TEAM = "registry.test/team/"
TIMEOUT = "service.test/idle-timeout"
POOL, INSIDE = "pool.test/name", "pool.test/internal"
WORDS = [
    "--set",
    f"tenants.restrict=true,tenants.images={{{TEAM}}},tenants.serviceAnnotations={{{TIMEOUT}}},"
    f"tenants.serviceLabels={{{POOL}}},tenants.loadBalancerClasses={{{INSIDE}}}",
]

ALLOWED = {
    "nothing but what is needed": {"clusterRef": {"name": "demo"}},
    "claims and memory": {
        "clusterRef": {"name": "demo"},
        "submounts": [{"path": "/home", "claimName": "homes"}, {"path": "/scratch", "tmpfs": {"size": "1Gi"}}],
    },
    "scratch of its pod": {"clusterRef": {"name": "demo"}, "submounts": [{"path": "/x", "volume": {"emptyDir": {}}}]},
    "an image of the team": {"clusterRef": {"name": "demo"}, "image": f"{TEAM}slurm:1"},
    "volumes without a right": {
        "clusterRef": {"name": "demo"},
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "b"}}],
    },
    "labels of its pods": {"clusterRef": {"name": "demo"}, "podTemplate": {"metadata": {"labels": {"team": "ml"}}}},
    "GPUs": {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", "count": 8}},
    "devices by a plugin": {"clusterRef": {"name": "demo"}, "rdma": {"resources": {"rdma/hca": "1"}}},
}
REFUSED = {
    "the root of the Node in the jail": (
        {"submounts": [{"path": "/host", "hostPath": {"path": "/"}}]},
        "submounts.hostPath",
    ),
    "the same as a volume": (
        {"submounts": [{"path": "/host", "volume": {"hostPath": {"path": "/"}}}]},
        "submounts.volume",
    ),
    "a Secret of others in the jail": (
        {"submounts": [{"path": "/s", "volume": {"secret": {"secretName": "other"}}}]},
        "submounts.volume",
    ),
    "the root of the Node in slurmd's container": (
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
        "volumes: tenants",
    ),
    "a token of Kubernetes": (
        {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
        "volumes: tenants",
    ),
    "a volume with two sources": (
        {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        "volumes: tenants",
    ),
    "a privileged container": (
        {
            "podTemplate": {
                "spec": {"containers": [{"name": "x", "image": "y", "securityContext": {"privileged": True}}]}
            }
        },
        "podTemplate",
    ),
    "a service account": ({"podTemplate": {"spec": {"serviceAccountName": "admin"}}}, "podTemplate"),
    "annotations that a runtime reads": ({"podTemplate": {"metadata": {"annotations": {"a": "b"}}}}, "podTemplate"),
    "an image from anywhere": ({"image": "docker.io/evil/slurm:1"}, "image: tenants"),
    "an image that begins almost like the team's": ({"image": "registry.test/teams/slurm:1"}, "image: tenants"),
    "a driver of the Node": (
        {"gpu": {"vendor": "nvidia", "count": 1, "driver": {"hostPath": {"path": "/"}}}},
        "gpu.driver",
    ),
    "a driver that a file of the Node names": (
        {"gpu": {"vendor": "nvidia", "count": 1, "driver": {"cdi": {"root": "/root"}}}},
        "gpu.driver",
    ),
    "devices of the Node": ({"rdma": {"infiniband": True}}, "rdma.infiniband"),
}
#: Where a SlurmCluster has a podTemplate.
ROLES = (
    ("jail",),
    ("controller",),
    ("login",),
    ("rest",),
    ("rest", "users"),
    ("accounting", "slurmdbd"),
    ("accounting", "managedDatabase"),
    ("metrics", "exporter"),
)


def nested(path, value):
    """A spec that has the value at this path."""
    for key in reversed(path):
        value = {key: value}
    return value


CLUSTERS_ALLOWED = {
    "labels of login": {"login": {"podTemplate": {"metadata": {"labels": {"team": "ml"}}}}},
    "nothing": {},
    "images of the team": {"images": {"slurm": f"{TEAM}slurm:1", "pullPolicy": "Always", "pullSecrets": ["team"]}},
    "a Secret that is there for such clusters": {"sssd": {"configSecretName": "slurm-ldap"}},
    "an annotation that is allowed": {"login": {"service": {"annotations": {TIMEOUT: "60"}}}},
    "files and scripts": {
        "config": {
            "files": [
                {"name": "mpi.conf", "configMapKeyRef": {"name": "any", "key": "k"}},
                {"name": "b.lua", "secretKeyRef": {"name": "slurm-b", "key": "k"}},
            ],
            "prolog": [{"name": "a", "text": "#!/bin/sh"}],
        }
    },
    "a label and a class that are allowed": {
        "login": {"service": {"type": "LoadBalancer", "labels": {POOL: "a"}, "loadBalancerClass": INSIDE}}
    },
    "checks that drain": {"health": {"mode": "Drain", "onFailure": {"disk-full": "Drain"}}},
}
CLUSTERS_REFUSED = {
    "a jail with a folder of the Node": (
        {"jail": {"submounts": [{"path": "/host", "hostPath": {"path": "/etc"}}]}},
        "hostPath",
    ),
    "an image of Slurm": ({"images": {"slurm": "evil/slurm"}}, "image: tenants"),
    "an image of the jail": ({"jail": {"image": "evil/jail"}}, "image: tenants"),
    **{
        f"a pod of their own making at {'.'.join(path)}": (
            nested(path, {"podTemplate": {"spec": {"hostPID": True}}}),
            "podTemplate",
        )
        for path in ROLES
    },
    "no user namespace": ({"security": {"userNamespace": False}}, "security.userNamespace"),
    "a resource of another operator": (
        {"accounting": {"mariadbOperator": {"spec": {"image": "evil"}}}},
        "accounting.mariadbOperator",
    ),
    "a Secret of others for SSSD": ({"sssd": {"configSecretName": "other"}}, "a Secret that"),
    "a Secret of others for a database": (
        {"accounting": {"externalDatabase": {"host": "db", "password": {"secretName": "other"}}}},
        "a Secret that",
    ),
    "a token into a Secret of others": (
        {"rest": {"users": {"tokens": [{"user": "ci", "secretName": "other"}]}}},
        "a Secret that",
    ),
    "a Secret of others as a file of slurmctld": (
        {"config": {"files": [{"name": "a.lua", "secretKeyRef": {"name": "other", "key": "k"}}]}},
        "a Secret that",
    ),
    "a Secret of others as a script of slurmctld": (
        {"config": {"epilogSlurmctld": [{"name": "a", "secretKeyRef": {"name": "other", "key": "k"}}]}},
        "a Secret that",
    ),
    "a Secret with the cluster's name, which a tenant chooses": (
        {"sssd": {"configSecretName": "demo-ldap"}},
        "a Secret that",
    ),
    "a name in DNS for a login Service": (
        {"login": {"service": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}}}},
        "service.annotations",
    ),
    "the same for REST": (
        {"rest": {"users": {"service": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "a.b"}}}}},
        "service.annotations",
    ),
    "an address of a pool that a label chooses": (
        {"login": {"service": {"labels": {"pool.test/other": "a"}}}},
        "service.labels",
    ),
    "a program that makes load balancers of others": (
        {
            "rest": {
                "users": {
                    "tls": {"secretName": "slurm-tls"},
                    "service": {"type": "LoadBalancer", "loadBalancerClass": "other"},
                }
            }
        },
        "service.loadBalancerClass",
    ),
    "a check of its own that cordons Nodes": (
        {"health": {"customChecks": [{"name": "mine", "run": ["/bin/false"], "onFailure": "Replace"}]}},
        "onFailure: Replace",
    ),
    "checks that cordon Nodes": ({"health": {"onFailure": {"disk-full": "Replace"}}}, "onFailure: Replace"),
}


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane) -> Try:
    """kubectl with a token: what it says of objects on its standard input."""

    def run(token: str, objects: list[Object], *words: str) -> str:
        command = [
            *(str(plane.binaries / "kubectl"), "--kubeconfig=/dev/null", "--insecure-skip-tls-verify"),
            *(f"--server={plane.url}", f"--token={token}", *words, "-f", "-"),
        ]
        text = yaml.safe_dump_all(objects)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return run


def made(kind: str, spec: Object, name: str = "demo") -> Object:
    """An object of ours."""
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "slurm.soperator.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def attempt(kubectl: Try, helm: str) -> Iterator[Try]:
    """A try to make an object, with the policy in force; empty where it is allowed. One that breaks the policy was there before it."""
    crds = template(helm, "soperator-crds")
    kubectl(ADMIN, crds, "apply", "--server-side")
    old = made("NodeSet", {"clusterRef": {"name": "demo"}, "rdma": {"infiniband": True}}, "old")
    deadline = time.monotonic() + 30
    while "serverside-applied" not in (said := kubectl(ADMIN, [old], "apply", "--server-side")):
        assert time.monotonic() < deadline, said
    policy = [each for each in template(helm, "soperator", *WORDS) if each["metadata"]["name"].endswith("-tenants")]
    assert len(policy) == 2
    said = kubectl(ADMIN, policy, "apply", "--server-side")
    assert said.count("serverside-applied") == 2, said

    def run(kind: str, spec: Object, token: str = GUEST, name: str = "demo") -> str:
        said = kubectl(
            token, [made(kind, spec, name)], "apply", "--server-side", "--force-conflicts", "--dry-run=server"
        )
        return "" if "serverside-applied" in said else said

    while not run("NodeSet", {"clusterRef": {"name": "demo"}, "image": "evil"}):
        assert time.monotonic() < deadline + 30, "the policy never came into force"
        time.sleep(0.2)
    yield run
    kubectl(ADMIN, policy, "delete", "--ignore-not-found")


@pytest.mark.parametrize("spec", ALLOWED.values(), ids=ALLOWED)
def test_a_tenant_makes_nodes_of_claims_and_named_images(attempt: Try, spec: Object) -> None:
    """What gives no right on a Node is allowed."""
    assert attempt("NodeSet", spec) == ""


@pytest.mark.parametrize(("spec", "word"), REFUSED.values(), ids=REFUSED)
def test_a_tenant_gets_no_right_on_a_node_by_a_nodeset(attempt: Try, spec: Object, word: str) -> None:
    """Each way is refused with the field and the remedy; the control is an administrator, who may."""
    said = attempt("NodeSet", {"clusterRef": {"name": "demo"}, **spec})
    assert f"denied request: {word}" in said, said
    assert attempt("NodeSet", {"clusterRef": {"name": "demo"}, **spec}, token=ADMIN) == ""


@pytest.mark.parametrize("spec", CLUSTERS_ALLOWED.values(), ids=CLUSTERS_ALLOWED)
def test_a_tenant_makes_a_cluster(attempt: Try, spec: Object) -> None:
    """What gives no right on a Node is allowed."""
    assert attempt("SlurmCluster", spec) == ""


@pytest.mark.parametrize(("spec", "word"), CLUSTERS_REFUSED.values(), ids=CLUSTERS_REFUSED)
def test_a_tenant_gets_no_right_on_a_node_by_a_cluster(attempt: Try, spec: Object, word: str) -> None:
    """Each way is refused with the field and the remedy; the control is an administrator, who may."""
    said = attempt("SlurmCluster", spec)
    assert word in said, said
    assert "denied" in said
    assert attempt("SlurmCluster", spec, token=ADMIN) == ""


def test_a_deep_check_of_a_tenant_cordons_nothing(attempt: Try) -> None:
    """Replace is refused, and Drain is not."""
    check = {"clusterRef": {"name": "demo"}, "check": "cpu"}
    assert "onFailure: Replace" in attempt("HealthCheck", check | {"onFailure": "Replace"})
    assert attempt("HealthCheck", check | {"onFailure": "Replace"}, token=ADMIN) == ""
    assert attempt("HealthCheck", check | {"onFailure": "Drain"}) == ""


def test_a_backup_of_a_tenant_has_a_password_of_its_own(attempt: Try) -> None:
    """restic tells whether a password is right, so another's Secret could be guessed."""
    backup = {
        "clusterRef": {"name": "demo"},
        "repository": {"claimName": "backups", "password": {"secretName": "other"}},
    }
    assert "a Secret that" in attempt("SlurmBackup", backup)
    assert attempt("SlurmBackup", backup, token=ADMIN) == ""
    mine = {"claimName": "backups", "password": {"secretName": "slurm-restic"}}
    assert attempt("SlurmBackup", backup | {"repository": mine}) == ""


def test_what_was_there_before_keeps_its_spec(attempt: Try, kubectl: Try) -> None:
    """Its labels and finalizers change, as the operator needs, and its spec changes only to what is allowed."""
    whole = {"clusterRef": {"name": "demo"}, "rdma": {"infiniband": True}}
    labelled = made("NodeSet", whole, "old")
    labelled["metadata"]["finalizers"] = ["slurm.soperator.io/jobs"]
    said = kubectl(GUEST, [labelled], "apply", "--server-side", "--force-conflicts", "--dry-run=server")
    assert "serverside-applied" in said, said
    assert "rdma.infiniband" in attempt("NodeSet", whole | {"replicas": 3}, name="old")
    assert (
        attempt("NodeSet", {"clusterRef": {"name": "demo"}, "rdma": {"infiniband": False}, "replicas": 3}, name="old")
        == ""
    )


def test_the_policy_is_off_unless_it_is_asked_for(helm: str) -> None:
    """The chart makes none by itself, and an image prefix without a slash at its end is refused."""
    assert not [each for each in template(helm, "soperator") if each["metadata"]["name"].endswith("-tenants")]
    command = [helm, "template", "demo", str(CHARTS / "soperator"), "--set", "tenants.images={registry.test/team}"]
    assert "images" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_the_api_server_has_nothing_to_say_of_the_expressions(attempt: Try, plane: ControlPlane) -> None:
    """Kubernetes checks the types of a policy against our CRDs, and warns of what cannot be."""
    command = [str(plane.binaries / "kubectl"), "--kubeconfig=/dev/null", "--insecure-skip-tls-verify"]
    command += [f"--server={plane.url}", f"--token={ADMIN}", "get", "validatingadmissionpolicies", "-o", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["items"]
    assert [each.get("status", {}).get("typeChecking", {}).get("expressionWarnings", []) for each in found] == [[]]
