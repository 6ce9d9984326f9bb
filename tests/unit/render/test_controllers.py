"""slurmctld with backups."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.objects import render_cluster
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf.slurm_conf import slurm_conf
from tests.golden.cases import DEFAULTS


def cluster(**controller):
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate({"controller": controller}))


def rendered(made):
    """The objects of slurmctld and its state by kind and name."""
    found = render_cluster(made, DEFAULTS, jail_ready=True)
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def test_slurm_conf_names_all_in_their_order():
    """Each by its host name, which is its pod's, and the name of its Service."""
    lines = [line for line in slurm_conf(cluster(replicas=3)).splitlines() if line.startswith("SlurmctldHost=")]
    assert lines == [
        "SlurmctldHost=demo-controller-0(demo-controller)",
        "SlurmctldHost=demo-controller-1(demo-controller-1)",
        "SlurmctldHost=demo-controller-2(demo-controller-2)",
    ]


def test_each_has_a_service_that_leads_to_its_pod_alone():
    """Nobody who means the first may reach a backup."""
    found = rendered(cluster(replicas=2))
    for number, name in enumerate(("demo-controller", "demo-controller-1")):
        selector = found["Service", name]["spec"]["selector"]
        assert selector["statefulset.kubernetes.io/pod-name"] == f"demo-controller-{number}"


def test_backups_lie_apart_and_are_evicted_one_at_a_time():
    """On different Nodes where there are some; the state is on a claim that all of them can write."""
    found = rendered(cluster(replicas=2))
    sets = found["StatefulSet", "demo-controller"]["spec"]
    assert sets["replicas"] == 2
    assert "podAntiAffinity" in sets["template"]["spec"]["affinity"]
    assert found["PodDisruptionBudget", "demo-controller"]["spec"]["maxUnavailable"] == 1
    assert found["PersistentVolumeClaim", "demo-state"]["spec"]["accessModes"] == ["ReadWriteMany"]


def test_an_affinity_of_the_spec_stands():
    """Who says where slurmctld runs is obeyed."""
    mine = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    found = rendered(cluster(replicas=2, scheduling={"affinity": mine}))
    assert found["StatefulSet", "demo-controller"]["spec"]["template"]["spec"]["affinity"] == mine


@pytest.mark.parametrize("key", [("Service", "demo-controller-1"), ("PodDisruptionBudget", "demo-controller")])
def test_one_alone_has_none_of_it(key):
    """A cluster without backups is rendered as if there were none to have."""
    assert key not in rendered(cluster())
    assert "affinity" not in rendered(cluster())["StatefulSet", "demo-controller"]["spec"]["template"]["spec"]
