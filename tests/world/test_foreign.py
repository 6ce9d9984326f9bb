"""Objects of others that have the names of ours: they were there first, and neither their content nor their pods are the operator's to change."""

import asyncio
import copy

import pytest

from soperator.kube import kinds
from soperator.reconcile.cache.informers import CHILDREN
from tests.world.deep import begin
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


@pytest.mark.parametrize("name", ["demo-state", "demo-jail", "demo-database"])
async def test_a_claim_of_others_is_used_and_stays_theirs(name):
    """As if the spec named it: it gets no owner, with which it would be deleted, and no field of ours."""
    town = Town()
    claim = foreign(kinds.PVC, name)
    town.fake.world.seed(
        claim | {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "9Gi"}}}}
    )
    before = copy.deepcopy(town.find(kinds.PVC, name))
    async with operating(town):
        town.apply(kinds.SLURMCLUSTER, "demo", {**LARGE, "jail": {"claim": {"size": "1Gi"}}, "controller": {}})
        await until(lambda: len(town.names(kinds.PVC)) == 3)
        await town.settle()
        assert town.find(kinds.PVC, name) == before
        assert all("demo" in each for each in town.names(kinds.PVC))


@pytest.mark.parametrize(
    "foreign_object",
    [
        {
            "apiVersion": "k8s.mariadb.com/v1alpha1",
            "kind": "MariaDB",
            "metadata": {"name": "demo-database"},
            "spec": {},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "demo-database-root"},
            "data": {"password": "eA=="},
        },
    ],
    ids=lambda each: each["kind"],
)
async def test_a_database_of_others_is_not_taken_over(foreign_object):
    """Neither the resource of mariadb-operator, nor the Secret that would be the root password of the new database."""
    town = Town()
    town.fake.world.seed(foreign_object | {"metadata": {**foreign_object["metadata"], "namespace": NS}})
    kind, name = kinds.kind_of(foreign_object), foreign_object["metadata"]["name"]
    before = copy.deepcopy(town.find(kind, name))
    async with operating(town):
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"mariadbOperator": {}}})
        await until(lambda: f"{kind}/{name} exists" in accounted(town))
        assert town.find(kind, name) == before
        assert kind == kinds.MARIADB or town.find(kinds.MARIADB, "demo-database") is None
        town.fake.world.remove(kind, NS, name)
        await until(lambda: town.find(kinds.MARIADB, "demo-database"), longest=400)


def accounted(town):
    """What the cluster says of accounting."""
    conditions = town.status(kinds.SLURMCLUSTER, "demo").get("conditions", ())
    return next((each["message"] for each in conditions if each["type"] == "AccountingReady"), "")


async def test_a_copy_of_the_configuration_with_a_foreign_owner_is_neither_edited_nor_deleted():
    """Its name has a hash of the files, which whoever knows the spec can compute."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        name = next(each for each in town.names(kinds.CONFIGMAP) if each.startswith("demo-config-"))
    stranger = Town()
    stranger.fake.world.seed(foreign(kinds.CONFIGMAP, name))
    before = copy.deepcopy(stranger.find(kinds.CONFIGMAP, name))
    async with operating(stranger):
        stranger.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
        stranger.apply(kinds.NODESET, "worker", WORKERS["worker"])
        await until(lambda: f"ConfigMap/{name} exists" in told(stranger), longest=60)
        assert stranger.find(kinds.CONFIGMAP, name) == before


async def test_a_configmap_of_others_with_the_name_of_a_checks_memory_is_not_taken_over():
    """The HealthCheck names it."""
    town = Town()
    name = "demo.healthcheck.disk"
    town.fake.world.seed(foreign(kinds.CONFIGMAP, name))
    before = copy.deepcopy(town.find(kinds.CONFIGMAP, name))
    async with operating(town):
        await begin(town, when={"runRequest": "now"})
        await until(lambda: f"ConfigMap/{name} exists" in town.says(kinds.HEALTHCHECK, "disk"), longest=60)
        assert town.find(kinds.CONFIGMAP, name) == before
