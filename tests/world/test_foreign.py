"""Objects of others that have the names of ours: they were there first, and neither their content nor their pods are the operator's to change."""

import asyncio
import copy

import pytest

from soperator.kube import kinds
from soperator.reconcile.cache.informers import CHILDREN
from tests.world.harness import NS, Town, operating, until
from tests.world.test_by_hand import CLUSTER as LARGE
from tests.world.test_by_hand import ours, running
from tests.world.test_cluster import CLUSTER, WORKERS


def foreign(kind, name):
    """An object that Helm made for another program."""
    meta = {"name": name, "namespace": NS, "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    return made | ({"data": {"of": "others"}} if kind == kinds.CONFIGMAP else {"spec": {"of": "others"}})


NAMES = {
    "ConfigMap": ("accounting", "anchor", "config", "login"),
    "Deployment": ("exporter", "rest", "rest-users"),
    "NetworkPolicy": ("controller", "database", "exporter", "inside", "login", "rest", "rest-users", "workers"),
    "PodDisruptionBudget": ("controller", "login", "rest-users", "workers"),
    "Service": (
        "accounting",
        "controller",
        "controller-1",
        "database",
        "exporter",
        "login",
        "nodes",
        "rest",
        "rest-users",
    ),
    "StatefulSet": ("accounting", "controller", "database", "login"),
}
ALL = [(kind, f"demo-{name}") for kind, names in NAMES.items() for name in names]


async def test_every_object_is_tried():
    """One that is new is tried too; Secrets are in test_keys, and names with a hash nobody else has."""
    async with running() as town:
        found = [(kind.kind, name) for kind, name in ours(town) if kind != kinds.SECRET]
    assert (
        sorted(each for each in found if not any(part in each[1] for part in ("-config-", "-jail-", "-checks"))) == ALL
    )


@pytest.mark.parametrize(("kind", "name"), [*ALL, ("Job", "demo-populate")])
async def test_an_object_of_others_is_not_taken_over(kind, name):
    """It stays as it is, the cluster says which it is, and comes up once the name is free."""
    of = next(each for each in CHILDREN if each.kind == kind)
    town = Town()
    town.fake.world.seed(foreign(of, name))
    before = copy.deepcopy(town.find(of, name))
    async with operating(town):
        town.apply(kinds.SLURMCLUSTER, "demo", LARGE)
        await asyncio.sleep(3)
        if kind != "Job" and town.find(kinds.JOB, "demo-populate"):
            town.fill_jail()
        await until(lambda: f"{kind} {name} exists" in told(town) or f"{kind}/{name} exists" in told(town))
        assert town.find(of, name) == before
        town.fake.world.remove(of, NS, name)
        await until(lambda: town.find(of, name), longest=700)
        assert town.find(of, name)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "soperator"


def told(town):
    """What the cluster says."""
    return town.says(kinds.SLURMCLUSTER, "demo")


async def test_a_pod_of_others_is_told():
    """It has the name of a worker that is to come; the others come up, and it stays."""
    town = Town()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "demo-worker-0", "namespace": NS}, "spec": {}}
    town.fake.world.seed(pod | {"spec": {"containers": []}})
    uid = town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"]
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        await town.told(kinds.NODESET, "worker", "demo-worker-0 exists and is not of NodeSet worker")
        assert town.find(kinds.POD, "demo-worker-1")
        assert town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"] == uid
        town.fake.world.remove(kinds.POD, NS, "demo-worker-0")
        await until(lambda: town.find(kinds.POD, "demo-worker-0"), longest=400)


async def test_an_object_of_others_that_came_in_place_of_a_deleted_one_is_not_taken_over():
    """The operator has written one of this name before, and it may be long ago."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"service": {"type": "ClusterIP"}}})
        await until(lambda: town.find(kinds.SERVICE, "demo-login")["spec"]["type"] == "ClusterIP")
        await town.settle()
        town.fake.world.remove(kinds.SERVICE, NS, "demo-login")
        town.fake.world.seed(foreign(kinds.SERVICE, "demo-login"))
        before = copy.deepcopy(town.find(kinds.SERVICE, "demo-login"))
        await until(lambda: "Service/demo-login exists" in told(town))
        assert town.find(kinds.SERVICE, "demo-login") == before
        town.fake.world.remove(kinds.SERVICE, NS, "demo-login")
        await until(lambda: town.find(kinds.SERVICE, "demo-login"), longest=700)
