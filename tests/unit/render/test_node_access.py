"""Which fields of a backup's objects give rights on the Nodes."""

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.backup.node_access import node_access
from tests.unit.model_fields import has


def found(spec):
    objects = [{"kind": "NodeSet", "metadata": {"name": "worker"}, "spec": spec}]
    return [each.removeprefix("NodeSet worker: spec.").partition(" ")[0] for each in node_access(objects)]


APPARMOR = "container.apparmor.security.beta.kubernetes.io"
CONTAINER = {"name": "slurmd", "securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"submounts": [{"path": "/a", "hostPath": {"path": "/"}}]}, ["submounts[0].hostPath"]),
        ({"submounts": [{"path": "/a", "volume": {"csi": {"driver": "x"}}}]}, ["submounts[0].volume.csi"]),
        ({"volumes": [{"name": "a", "iscsi": {"lun": 0}}]}, ["volumes[0].iscsi"]),
        ({"gpu": {"driver": {"hostPath": {"path": "/run/nvidia"}}}}, ["gpu.driver.hostPath"]),
        ({"gpu": {"driver": {"cdi": {"path": "/etc/cdi"}}}}, ["gpu.driver.cdi"]),
        ({"rdma": {"infiniband": True}}, ["rdma.infiniband"]),
        ({"security": {"userNamespace": False}}, ["security.userNamespace"]),
        ({"accounting": {"mariadbOperator": {"spec": {"a": 1}}}}, ["accounting.mariadbOperator.spec"]),
        (
            {"podTemplate": {"spec": {"hostPID": True, "serviceAccountName": "admin", "containers": [CONTAINER]}}},
            [
                "podTemplate.spec.hostPID",
                "podTemplate.spec.serviceAccountName",
                "podTemplate.spec.containers[0].securityContext.privileged",
                "podTemplate.spec.containers[0].securityContext.capabilities",
            ],
        ),
        (
            {"jail": {"podTemplate": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}}}},
            ["jail.podTemplate.spec.volumes[0].hostPath"],
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"name": "slurmd", "securityContext": None}]}}},
            ["podTemplate.spec.containers[0].securityContext"],
        ),
        (
            {"podTemplate": {"spec": {"automountServiceAccountToken": None, "hostUsers": None}}},
            ["podTemplate.spec.automountServiceAccountToken", "podTemplate.spec.hostUsers"],
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"securityContext": {"capabilities": None}}]}}},
            ["podTemplate.spec.containers[0].securityContext.capabilities"],
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"livenessProbe": {"httpGet": {"host": "169.254.169.254"}}}]}}},
            ["podTemplate.spec.containers[0].livenessProbe.httpGet.host"],
        ),
        (
            {"podTemplate": {"spec": {"containers": [{"lifecycle": {"preStop": {"tcpSocket": {"host": "::1"}}}}]}}},
            ["podTemplate.spec.containers[0].lifecycle.preStop.tcpSocket.host"],
        ),
        (
            {"podTemplate": {"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}}},
            ["podTemplate.metadata.annotations.seccomp.security.alpha.kubernetes.io/pod"],
        ),
        ({"podTemplate": {"spec": {"runtimeClassName": "bare"}}}, ["podTemplate.spec.runtimeClassName"]),
        (
            {"podTemplate": {"metadata": {"annotations": {f"{APPARMOR}/slurmd": "unconfined"}}}},
            [f"podTemplate.metadata.annotations.{APPARMOR}/slurmd"],
        ),
    ],
)
def test_each_right_is_named_with_its_path(spec, paths):
    """At any depth."""
    assert found(spec) == paths


def test_what_stays_in_the_namespace_is_no_right_on_a_node():
    """Claims, scratch, and fields that are off."""
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "b"}}, {"name": "c", "emptyDir": {}}]
    spec = {
        "volumes": volumes,
        "submounts": [
            {"path": "/a", "volume": {"nfs": {"server": "x", "path": "/"}}},
            {"path": "/b", "tmpfs": {"size": "1Gi"}},
        ],
        "rdma": {"infiniband": False},
        "security": {"userNamespace": True},
        "podTemplate": {"metadata": {"labels": {"team": "ml"}}, "spec": {"hostPID": False, "serviceAccountName": None}},
        "accounting": {"mariadbOperator": {}, "externalDatabase": {"host": "db.example.com"}},
    }
    assert found(spec) == []


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (NodeSetSpec, ["rdma", "infiniband"]),
        (NodeSetSpec, ["gpu", "driver", "cdi"]),
        (NodeSetSpec, ["gpu", "driver", "hostPath"]),
        (NodeSetSpec, ["volumes"]),
        (SlurmClusterSpec, ["jail", "submounts"]),
        (SlurmClusterSpec, ["security", "userNamespace"]),
        (SlurmClusterSpec, ["accounting", "mariadbOperator", "spec"]),
    ],
)
def test_our_fields_have_these_names(kind, path):
    """One that is renamed does not get past the search."""
    assert has(kind, path)
