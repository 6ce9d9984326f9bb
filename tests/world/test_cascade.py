"""Deletions by every policy of Kubernetes' garbage collector: it takes no child of ours while the operator still waits for jobs."""

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels, names
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating
from tests.world.remembered import remembered
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_ending import gone

POLICIES = ("Foreground", "Background", "Orphan")
#: What slurmctld needs for the jobs that run.
CHILDREN = (
    (kinds.STATEFULSET, "demo-controller"),
    (kinds.DEPLOYMENT, "demo-rest"),
    (kinds.SERVICE, "demo-controller"),
    (kinds.CONFIGMAP, "demo-config"),
    (kinds.SECRET, "demo-auth-key"),
    (kinds.SECRET, "demo-jwt-key"),
)


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def delete(town, kind, name, policy):
    """What `kubectl delete --wait=false --cascade=<policy>` does."""
    town.fake.world.delete(Where.at(kind, NS, name), policy=policy)


def missing(town):
    """Which children that slurmctld needs are gone, or on their way out."""
    found = {(kind, name): town.find(kind, name) for kind, name in CHILDREN}
    return [name for (_, name), obj in found.items() if obj is None or "deletionTimestamp" in obj["metadata"]]


def owners(town, kind, name):
    """The kinds of an object's owners."""
    return [each["kind"] for each in town.find(kind, name)["metadata"].get("ownerReferences", [])]


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_nodeset_keeps_its_workers_until_their_jobs_end_whatever_the_policy(town, policy):
    """The finalizer would be worth nothing if the garbage collector took the pods meanwhile."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-1", "ALLOCATED")
    delete(town, kinds.NODESET, "worker", policy)
    await town.settle(quiet=0.4)
    assert workers(town) == ["demo-worker-1"]
    assert town.slurm.nodes["worker-1"]["reason"] == "soperator: the NodeSet is being deleted"
    town.slurm.nodes["worker-1"]["state"] = ["IDLE", "DRAIN"]
    await gone(town, kinds.NODESET, "worker")
    assert (workers(town), town.slurm.nodes) == ([], {})


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_cluster_keeps_what_its_jobs_need_whatever_the_policy(town, policy):
    """Both kinds at once is what a GitOps tool does with an application that is removed."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-1", "ALLOCATED")
    delete(town, kinds.SLURMCLUSTER, "demo", policy)
    delete(town, kinds.NODESET, "worker", policy)
    await town.settle(quiet=0.4)
    assert (workers(town), missing(town)) == (["demo-worker-1"], [])
    town.slurm.nodes["worker-1"]["state"] = ["IDLE", "DRAIN"]
    await gone(town, kinds.NODESET, "worker")
    await gone(town, kinds.SLURMCLUSTER, "demo")
    assert workers(town) == []
    assert sorted(missing(town)) == sorted(name for _, name in CHILDREN)
    assert town.find(kinds.CONFIGMAP, names.anchor("demo")) is None


async def test_objects_of_a_former_operator_are_anchored_without_a_restart(town):
    """An upgraded operator finds children that have one owner; it adds the other to their metadata, and no pod is made anew."""
    await town.up(CLUSTER, WORKERS)
    before = town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"]
    town.fake.world.change(kinds.CONFIGMAP, (NS, names.anchor("demo")), {"metadata": {"finalizers": []}})
    town.fake.world.remove(kinds.CONFIGMAP, NS, names.anchor("demo"))
    await town.settle(quiet=0.4)
    assert owners(town, kinds.POD, "demo-worker-0") == ["NodeSet", "ConfigMap"]
    assert owners(town, kinds.STATEFULSET, "demo-controller") == ["SlurmCluster", "ConfigMap"]
    assert town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"] == before
    asked = len(town.fake.writes())
    await town.settle(quiet=0.4)
    assert town.fake.writes()[asked:] == []


async def test_jobs_that_were_given_up_take_their_pods_along(town):
    """With another owner the pods do not go by themselves when the NodeSet does, so the operator deletes them."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    delete(town, kinds.NODESET, "worker", "Background")
    await town.settle(quiet=0.4)
    town.fake.world.change(kinds.NODESET, (NS, "worker"), {"metadata": {"annotations": {labels.ABANDON: "true"}}})
    await gone(town, kinds.NODESET, "worker")
    assert workers(town) == []


async def test_children_go_with_a_cluster_whose_finalizer_somebody_removed(town):
    """The cluster is gone for good, so nothing is left to wait for; the operator takes the anchor away, and the collector the rest."""
    await town.up(CLUSTER, {})
    delete(town, kinds.SLURMCLUSTER, "demo", "Background")
    await gone(town, kinds.SLURMCLUSTER, "demo")
    await town.settle(quiet=0.4)
    assert town.find(kinds.CONFIGMAP, names.anchor("demo")) is None
    assert sorted(missing(town)) == sorted(name for _, name in CHILDREN)


async def test_an_operator_that_was_away_clears_up_after_a_removed_finalizer():
    """Who removes the finalizer by hand while no operator runs leaves the children to their anchor, until one is back."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, {})
    delete(town, kinds.SLURMCLUSTER, "demo", "Background")
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": {"finalizers": []}})
    assert town.find(kinds.SLURMCLUSTER, "demo") is None
    assert missing(town) == []
    async with operating(town):
        await gone(town, kinds.CONFIGMAP, names.anchor("demo"))
    assert sorted(missing(town)) == sorted(name for _, name in CHILDREN)


async def test_nothing_is_remembered_of_objects_that_are_gone(town):
    """An operator that runs for years sees many clusters come and go; what it holds of each goes with it, in whichever part that is."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.HEALTHCHECK, "disk", {"clusterRef": {"name": "demo"}, "script": "#!/bin/sh\nexit 0\n"})
    await town.settle(quiet=0.4)
    of = identities(town)
    begun = set(remembered(town.controllers, of, "controllers"))
    assert {each.rpartition("[")[2] for each in begun if ".memory." in each} >= {"'ConfigMaps that were right']"}
    delete(town, kinds.HEALTHCHECK, "disk", "Background")
    await gone(town, kinds.HEALTHCHECK, "disk")
    for kind, name in ((kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker")):
        delete(town, kind, name, "Background")
    await gone(town, kinds.SLURMCLUSTER, "demo")
    await gone(town, kinds.NODESET, "worker")
    await town.settle(quiet=0.4)
    assert sorted(remembered(town.controllers, of, "controllers")) == []


def identities(town):
    """The uids of everything that there is, and the keys of the objects of our kinds."""
    uids = {each["metadata"]["uid"] for each in town.fake.world.objects.values()}
    return uids | {(NS, name) for name in ("demo", "worker", "disk")}
