"""The words for what a rollout changes."""

import copy

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker.pod import render_worker
from soperator.render.worker.template_difference import first_difference
from tests.golden.cases import DEFAULTS, FULL_CLUSTER, FULL_NODESET

SIZE = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"cpu": "1", "memory": "4Gi"}}
SMALL = {"clusterRef": {"name": "demo"}, "image": "slurm:1", "resources": SIZE}


def pod(nodeset, cluster=None):
    """A worker's pod as it is rendered."""
    spec = SlurmClusterSpec.model_validate(cluster or {})
    made = NodeSet("slurm", "w", "2", NodeSetSpec.model_validate(nodeset))
    return render_worker(Cluster("slurm", "demo", "1", spec), made, 0, DEFAULTS)


def as_stored(rendered):
    """What the API server and a webhook make of it: defaults, canonical quantities, a container of somebody else's."""
    made = copy.deepcopy(rendered)
    spec = made["spec"]
    spec |= {"schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst", "nodeName": "node-1", "priority": 0}
    spec["tolerations"] = [
        *spec.get("tolerations", []),
        {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    ]
    for each in (*spec["containers"], *spec.get("initContainers", [])):
        each.setdefault("imagePullPolicy", "IfNotPresent")
        each.setdefault("terminationMessagePath", "/dev/termination-log")
        for amounts in each.get("resources", {}).values():
            for name, value in amounts.items():
                amounts[name] = {"0.1": "100m", "1000m": "1"}.get(value, value)
        for each_env in each.get("env", ()):
            if each_env.get("value") == "":
                del each_env["value"]
    spec["containers"].append({"name": "istio-proxy", "image": "mesh:1"})
    return made


@pytest.mark.parametrize(("nodeset", "cluster"), [(SMALL, None), (FULL_NODESET, FULL_CLUSTER)])
def test_a_pod_as_the_api_server_keeps_it_differs_in_nothing_that_is_rendered(nodeset, cluster):
    """Only the container of somebody else's is found, as the last thing, since nothing else is."""
    rendered = pod(nodeset, cluster)
    assert first_difference(as_stored(rendered), rendered) == "container istio-proxy is gone"
    assert first_difference(rendered, rendered) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "slurm:2"}, "image slurm:1 → slurm:2"),
        ({"resources": {**SIZE, "limits": {"cpu": "1", "memory": "8Gi"}}}, "resources.limits.memory 4Gi → 8Gi"),
        ({"resources": {"requests": SIZE["requests"]}}, "resources.limits.cpu 1 → none"),
        ({"features": ["blue"]}, "Feature=w,blue"),
        ({"scheduling": {"nodeSelector": {"pool": "a"}}}, "nodeSelector"),
        ({"submounts": [{"path": "/data", "claimName": "data"}]}, "mounts of the jail"),
        ({"podTemplate": {"metadata": {"annotations": {"team": "ml"}}}}, "annotation team"),
        ({"podTemplate": {"spec": {"hostNetwork": True}}}, "hostNetwork"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_difference_is_said(change, words):
    """Image, size, environment, then the rest; the operator compares with the pod as it runs."""
    found = first_difference(as_stored(pod(SMALL)), pod({**SMALL, **change}))
    assert found == words


def test_a_difference_is_no_longer_than_a_column():
    """An image may have five hundred characters."""
    assert len(first_difference(pod({**SMALL, "image": "a" * 500}), pod(SMALL))) <= 100
