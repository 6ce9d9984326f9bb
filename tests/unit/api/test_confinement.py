"""What takes walls down around a worker is found, wherever a spec says it."""

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.confinement import cluster_loosened, loosened, submounts_loosened


def found(**spec):
    """The fields of a NodeSet that take a wall down."""
    return [each.field for each in loosened(NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **spec}))]


def container(**security):
    """A podTemplate with a sidecar of this security context."""
    return {"podTemplate": {"spec": {"containers": [{"name": "x", "securityContext": security}]}}}


AT = "spec.podTemplate.spec.containers[0].securityContext"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (container(privileged=True), f"{AT}.privileged"),
        (container(capabilities={"add": ["SYS_ADMIN"]}), f"{AT}.capabilities.add"),
        (container(procMount="Unmasked"), f"{AT}.procMount"),
        (container(seccompProfile={"type": "Unconfined"}), f"{AT}.seccompProfile"),
        ({"podTemplate": {"spec": {"shareProcessNamespace": True}}}, "spec.podTemplate.spec.shareProcessNamespace"),
        ({"podTemplate": {"spec": {"serviceAccountName": "a"}}}, "spec.podTemplate.spec.serviceAccountName"),
        (
            {"podTemplate": {"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}},
            "spec.podTemplate.spec.securityContext.seccompProfile",
        ),
        (
            {"podTemplate": {"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/data"}}]}}},
            "spec.podTemplate.spec.volumes[0].hostPath.path",
        ),
        ({"volumes": [{"name": "a", "hostPath": {"path": "/data"}}]}, "spec.volumes[0].hostPath.path"),
        ({"podTemplate": {"spec": {"securityContext": None}}}, "spec.podTemplate.spec.securityContext"),
        (
            {"podTemplate": {"spec": {"securityContext": {"seccompProfile": None}}}},
            "spec.podTemplate.spec.securityContext.seccompProfile",
        ),
        ({"podTemplate": {"spec": {"containers": [{"name": "slurmd", "securityContext": None}]}}}, AT),
        (container(capabilities=None), f"{AT}.capabilities.drop"),
        (container(capabilities={"drop": []}), f"{AT}.capabilities.drop"),
        (
            {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "spec.volumes[0].projected.sources",
        ),
        ({"submounts": [{"path": "/a", "hostPath": {"path": "/etc/kubernetes"}}]}, "spec.submounts[0]"),
        ({"submounts": [{"path": "/a", "volume": {"hostPath": {"path": "/"}}}]}, "spec.submounts[0]"),
    ],
)
def test_each_wall_that_is_taken_down_is_found(spec, field):
    """The one field that does it is named."""
    assert found(**spec) == [field]


def test_each_wall_that_a_role_of_a_cluster_takes_down_is_found():
    """Its jail's submounts, and the podTemplate of each role."""
    open_ = container(privileged=True)
    spec = {
        "login": open_,
        "metrics": {"exporter": open_},
        "jail": {"submounts": [{"path": "/a", "hostPath": {"path": "/etc"}}]},
    }
    fields = [each.field for each in cluster_loosened(SlurmClusterSpec.model_validate(spec))]
    at = AT.removeprefix("spec.")
    assert fields == ["spec.jail.submounts[0]", f"spec.login.{at}.privileged", f"spec.metrics.exporter.{at}.privileged"]


@pytest.mark.parametrize("said", [{"runAsUser": 0}, {"runAsUser": None}, {"allowPrivilegeEscalation": True}])
def test_root_of_a_pod_without_a_user_namespace_is_found(said):
    """It is root of the Node, where root of login and of a worker is nobody."""
    spec = SlurmClusterSpec.model_validate(
        {"controller": container(**said), "login": container(**said), "jail": container(**said)}
    )
    field = f"spec.controller.{AT.removeprefix('spec.')}.{next(iter(said))}"
    assert [each.field for each in cluster_loosened(spec)] == [field]
    assert found(**container(**said)) == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        container(privileged=False, capabilities={"drop": ["ALL"]}, seccompProfile={"type": "RuntimeDefault"}),
        {
            "podTemplate": {
                "spec": {"automountServiceAccountToken": False, "containers": [{"name": "slurmd", "env": []}]}
            }
        },
        {"volumes": [{"name": "a", "emptyDir": {}}]},
        {"submounts": [{"path": "/a", "hostPath": {"path": "/mnt/nvme"}}, {"path": "/b", "claimName": "b"}]},
        {"submounts": [{"path": "/a", "hostPath": {"path": "/etc/ssl"}, "readOnly": True}]},
        {"podTemplate": {"spec": "nonsense"}},
        {"podTemplate": {"spec": {"containers": ["nonsense"], "volumes": 3}}},
    ],
)
def test_what_takes_no_wall_down_is_passed_over(spec):
    """Local scratch, sidecars without rights and texts that are no template are no finding."""
    assert found(**spec) == []


@pytest.mark.parametrize("path", ["/", "/etc", "/var", "/var/lib", "/var/lib/kubelet/pods", "/run", "/usr/local"])
def test_system_folders_of_a_node_are_found(path):
    """A cluster's submounts reach login and all workers."""
    spec = SlurmClusterSpec.model_validate({"jail": {"submounts": [{"path": "/a", "hostPath": {"path": path}}]}})
    assert [each.value for each in submounts_loosened("jail.submounts", spec.jail.submounts)] == [path]


@pytest.mark.parametrize("path", ["/mnt", "/data/etc", "/var/lib/scratch", "/home", "/etcetera"])
def test_folders_of_data_are_not(path):
    """A folder that only begins like a system folder is none."""
    spec = SlurmClusterSpec.model_validate({"jail": {"submounts": [{"path": "/a", "hostPath": {"path": path}}]}})
    assert list(submounts_loosened("jail.submounts", spec.jail.submounts)) == []
