"""Objects with a value of a later release, as an operator meets them that was rolled back: they keep what they had, and say why nothing changes."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.world.deep import failing
from tests.world.harness import NS, Town, operating, until
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_gpus import GPUS, LINE

#: What no operator of this release can read.
LATER = {"auth": {"type": "ofTheNextRelease"}}
CLAIM = {"metadata": {"namespace": NS}, "spec": {}, "apiVersion": "v1", "kind": "PersistentVolumeClaim"}


@pytest.fixture
async def town():
    """A cluster with a partition and with two workers, the second of which has a job."""
    async with operating(Town()) as made:
        await made.up(CLUSTER | {"partitions": [{"name": "main", "nodeSets": ["worker"]}]}, WORKERS)
        made.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        yield made


def condition(town, kind, name, of):
    """One condition of an object."""
    return next(each for each in town.status(kind, name)["conditions"] if each["type"] == of)


def spec(town, kind, name):
    """The spec of an object as it is."""
    return town.find(kind, name)["spec"]


@pytest.mark.parametrize(
    "state", [{"name": "mine"}, {"name": "mine", "size": 5}, {"where": {"claim": "mine"}}], ids=str
)
async def test_its_state_is_its_own(town, state):
    """The name of the claim counts wherever a later release has put it."""
    town.fake.world.seed(CLAIM | {"metadata": {"namespace": NS, "name": "mine"}})
    town.apply(kinds.SLURMCLUSTER, "first", LATER | {"controller": {"state": state}})
    await asyncio.sleep(2)
    town.apply(kinds.SLURMCLUSTER, "second", {"controller": {"state": {"name": "mine"}}})
    await asyncio.sleep(5)
    assert town.find(kinds.STATEFULSET, "second-controller") is None
    assert "SlurmCluster first has its state there" in town.says(kinds.SLURMCLUSTER, "second")


async def test_the_state_that_the_operator_made_for_it_is_its_own(town):
    """It has the name that the operator gives, which stands in no spec."""
    town.fake.world.seed(CLAIM | {"metadata": {"namespace": NS, "name": "first-state"}})
    town.apply(kinds.SLURMCLUSTER, "first", LATER)
    await asyncio.sleep(2)
    town.apply(kinds.SLURMCLUSTER, "second", {"controller": {"state": {"name": "first-state"}}})
    await asyncio.sleep(5)
    assert town.find(kinds.STATEFULSET, "second-controller") is None


async def test_a_younger_one_takes_nothing_from_an_older(town):
    """Who was refused before has no state there."""
    town.apply(kinds.SLURMCLUSTER, "younger", LATER | {"controller": {"state": {"name": "demo-state"}}})
    town.apply(kinds.SLURMCLUSTER, "demo", spec(town, kinds.SLURMCLUSTER, "demo") | {"login": {"replicas": 2}})
    await asyncio.sleep(5)
    assert condition(town, kinds.SLURMCLUSTER, "demo", "SpecAccepted")["status"] == "True"


async def test_its_nodesets_wait_and_say_for_what(town):
    """That there is no such cluster would be false, and its workers stay."""
    before = town.names(kinds.POD)
    town.apply(kinds.SLURMCLUSTER, "demo", spec(town, kinds.SLURMCLUSTER, "demo") | LATER)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 3})
    await asyncio.sleep(10)
    assert town.names(kinds.POD) == before
    why = town.says(kinds.NODESET, "worker")
    assert "spec.clusterRef.name: demo: this operator cannot read that SlurmCluster" in why
    assert "no SlurmCluster in the namespace has this name" not in why


async def test_the_names_of_its_pods_are_its_own(town):
    """Another NodeSet would make pods of the same names."""
    town.apply(kinds.SLURMCLUSTER, "demo-worker", LATER)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2, "drain": "ofTheNextRelease"})
    await asyncio.sleep(2)
    town.apply(kinds.NODESET, "worker-login", {"clusterRef": {"name": "demo"}, "replicas": 1})
    town.apply(kinds.NODESET, "worker-0", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await asyncio.sleep(5)
    assert "of the login of SlurmCluster demo-worker" in town.says(kinds.NODESET, "worker-login")
    assert "it is also the Slurm node worker-0 of NodeSet worker" in town.says(kinds.NODESET, "worker-0")


async def test_a_nodeset_that_cannot_be_read_is_still_in_its_partition(town):
    """The cluster's spec names it, and is not refused for that; its workers count as they are, and the job stays."""
    before = town.find(kinds.CONFIGMAP, "demo-config")["data"]
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": "ofTheNextRelease"})
    await asyncio.sleep(10)
    assert condition(town, kinds.SLURMCLUSTER, "demo", "SpecAccepted")["status"] == "True"
    assert town.find(kinds.CONFIGMAP, "demo-config")["data"] == before
    assert town.status(kinds.SLURMCLUSTER, "demo")["workers"]["summary"] == "2/2"
    assert town.find(kinds.POD, "demo-worker-1")


async def test_the_gpus_of_a_nodeset_that_is_refused_stay_in_the_configuration():
    """A mistake in a spec drains no node with GPUs either; one that never had nodes is not in the configuration."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"h100": GPUS, **WORKERS})
        files = town.find(kinds.CONFIGMAP, "demo-config")["data"]
        assert files["gres.conf"] == LINE
        town.apply(kinds.NODESET, "h100", GPUS | {"extraConf": "Gres=gpu:h100:1"})
        town.apply(kinds.NODESET, "never", GPUS | {"extraConf": "Gres=gpu:h100:1"})
        await asyncio.sleep(20)
        assert "set it in gpu" in town.says(kinds.NODESET, "h100")
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"] == files
        assert not [each for each in town.names(kinds.POD) if each.startswith("demo-trial-")]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MaxJobCount=777"}}})
        await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
        town.trial_ends()
        await asyncio.sleep(20)
        changed = town.find(kinds.CONFIGMAP, "demo-config")["data"]
        assert "MaxJobCount=777" in changed["slurm.conf"]
        assert changed["gres.conf"] == LINE


@pytest.mark.parametrize(
    "later", [{"drain": "ofTheNextRelease"}, {"gpu": {"vendor": "ofTheNextRelease", "count": 2}}], ids=str
)
async def test_the_gpus_of_a_nodeset_that_cannot_be_read_stay_in_the_configuration(later):
    """Slurm drains a node with GPUs that gres.conf does not name; what else changes in the configuration waits, and the cluster says for what."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"h100": GPUS, **WORKERS})
        files = town.find(kinds.CONFIGMAP, "demo-config")["data"]
        assert files["gres.conf"] == LINE
        town.apply(kinds.NODESET, "h100", GPUS | later)
        await asyncio.sleep(20)
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"] == files
        assert not [each for each in town.names(kinds.POD) if each.startswith("demo-trial-")]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MaxJobCount=777"}}})
        await asyncio.sleep(20)
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"] == files
        told = condition(town, kinds.SLURMCLUSTER, "demo", "ConfigApplied")
        assert (told["status"], told["reason"]) == ("False", "NodeSetUnreadable")
        assert "NodeSet h100" in told["message"]
        town.apply(kinds.NODESET, "h100", GPUS | {"drain": {"onTimeout": "Wait"}})
        await asyncio.sleep(5)
        town.trial_ends()
        await asyncio.sleep(10)
        assert "MaxJobCount=777" in town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]


async def test_a_nodeset_that_never_began_holds_no_configuration_up(town):
    """It has no node, so nothing of it is in Slurm's configuration."""
    town.apply(kinds.NODESET, "late", {"clusterRef": {"name": "demo"}, "replicas": "ofTheNextRelease"})
    town.apply(
        kinds.SLURMCLUSTER,
        "demo",
        spec(town, kinds.SLURMCLUSTER, "demo") | {"config": {"extraLines": {"slurm": "MaxJobCount=777"}}},
    )
    await asyncio.sleep(5)
    town.trial_ends()
    await asyncio.sleep(10)
    assert "MaxJobCount=777" in town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]


async def test_what_it_loosens_is_still_loose(town):
    """Confined would else say of a cluster with such pods that root in the jail is nobody."""
    loose = {
        "clusterRef": {"name": "demo"},
        "replicas": 2,
        "drain": "ofTheNextRelease",
        "podTemplate": {"spec": {"shareProcessNamespace": True}},
    }
    town.apply(kinds.NODESET, "worker", loose)
    await asyncio.sleep(10)
    assert "shareProcessNamespace" in condition(town, kinds.SLURMCLUSTER, "demo", "Confined")["message"]


async def test_an_account_keeps_its_name(town):
    """The younger of two objects takes nothing over."""
    account = {"clusterRef": {"name": "demo"}, "name": "physics"}
    town.apply(kinds.SLURMACCOUNT, "physics", account | {"limits": "ofTheNextRelease"})
    await asyncio.sleep(2)
    town.apply(kinds.SLURMACCOUNT, "q", account)
    await asyncio.sleep(5)
    assert condition(town, kinds.SLURMACCOUNT, "q", "Ready")["reason"] == "Taken"


@pytest.mark.parametrize("kind", [kinds.SLURMACCOUNT, kinds.HEALTHCHECK], ids=str)
async def test_what_names_a_cluster_that_cannot_be_read_waits(town, kind):
    """It is not told that there is no such cluster."""
    town.apply(kinds.SLURMCLUSTER, "demo", spec(town, kinds.SLURMCLUSTER, "demo") | LATER)
    wanted = {"check": "cpu"} if kind == kinds.HEALTHCHECK else {}
    town.apply(kind, "it", {"clusterRef": {"name": "demo"}, **wanted})
    await asyncio.sleep(10)
    said = condition(town, kind, "it", "Ready")
    assert said["reason"] == "Waiting"
    assert "SlurmCluster demo is refused: see its status" in said["message"]


@pytest.mark.parametrize(
    ("kind", "name", "later"),
    [
        (kinds.HEALTHCHECK, "disk", {"failureThreshold": "ofTheNextRelease"}),
        (kinds.HEALTHCHECK, "disk", {"onFailure": "OfTheNextRelease"}),
        (kinds.NODESET, "worker", {"drain": "ofTheNextRelease"}),
        (kinds.NODESET, "worker", {"submounts": [{"path": "/data", "claimName": "missing"}]}),
    ],
    ids=str,
)
async def test_a_node_that_a_check_keeps_out_stays_out(kind, name, later):
    """Neither a check that cannot be read nor nodes that cannot be read are a check that has ended."""
    async with operating(Town()) as town:
        await failing(town, onFailure="Drain")
        before = spec(town, kind, name)
        town.apply(kind, name, before | later)
        await asyncio.sleep(300)
        assert "DRAIN" in town.slurm.nodes["worker-1"]["state"]
        if kind == kinds.NODESET:
            town.apply(kind, name, before | {"drain": {"onTimeout": "Wait"}, "submounts": []})
            await asyncio.sleep(300)
            assert "DRAIN" in town.slurm.nodes["worker-1"]["state"]
