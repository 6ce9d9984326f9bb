"""Features and weight follow the spec in Slurm, without a new pod."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating, until
from tests.world.scontrol import Scontrol

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
PARTITIONS = [
    {"name": "all", "default": True},
    {"name": "fast", "features": ["blue"]},
    {"name": "own", "nodeSets": ["worker"]},
]
SIZE = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}


def spec(**more):
    """A NodeSet with two workers."""
    return {"clusterRef": {"name": "demo"}, "replicas": 2, **more}


@pytest.fixture
async def scontrol():
    """scontrol beside slurmctld."""
    return Scontrol(None)


@pytest.fixture
async def town(scontrol):
    """Two workers, and a partition over a feature."""
    town = Town()
    scontrol.slurm = town.slurm
    async with operating(town, execute=scontrol) as made:
        others = {"clusterRef": {"name": "demo"}, "replicas": 0, "features": ["blue"]}
        await made.up(CLUSTER | {"partitions": PARTITIONS}, {"worker": spec(), "other": others})
        yield made


def records(town):
    """Features and weight of each node in Slurm."""
    return {name: (node["features"], node.get("weight", 1)) for name, node in town.slurm.nodes.items()}


def uids(town):
    """The pods of the workers."""
    return {name: town.find(kinds.POD, name)["metadata"]["uid"] for name in ("demo-worker-0", "demo-worker-1")}


def events(town):
    """What the Events about changed records say."""
    found = [each for each in town.fake.world.objects.values() if each["kind"] == "Event"]
    return [each["note"] for each in found if each["reason"] == "NodeRecordUpdated"]


async def test_an_edit_changes_the_records_in_one_request_and_no_pod(town):
    """Nothing drains, a running job goes on, the rollout has nothing to do, and the Event says what changed."""
    town.slurm.run(7, "worker-0")
    before, asked = uids(town), len(town.slurm.asked)
    town.apply(kinds.NODESET, "worker", spec(features=["blue"], weight=5))
    await until(lambda: records(town)["worker-1"] == (["worker", "blue"], 5))
    await town.settle(quiet=0.5)
    assert records(town)["worker-0"] == (["worker", "blue"], 5)
    assert town.slurm.asked[asked:] == ["POST nodes/"]
    assert uids(town) == before
    assert town.status(kinds.NODESET, "worker")["updatedReplicas"] == 2
    assert 7 in town.slurm.jobs
    assert events(town) == ["worker-[0-1]: features worker → blue,worker, weight 1 → 5"]


async def test_a_pod_of_later_starts_with_the_new_values(town):
    """It has them on slurmd's command line, and is of the same template as the others."""
    town.apply(kinds.NODESET, "worker", spec(features=["blue"], weight=5, replicas=3))
    await until(lambda: town.find(kinds.POD, "demo-worker-2"))
    late = town.find(kinds.POD, "demo-worker-2")
    said = {each["name"]: each.get("value") for each in late["spec"]["containers"][0]["env"]}
    assert said["SOPERATOR_NODE_CONF"].split()[-2:] == ["Feature=worker,blue", "Weight=5"]
    first = town.find(kinds.POD, "demo-worker-0")["metadata"]["annotations"]
    assert late["metadata"]["annotations"]["slurm.soperator.io/template"] == first["slurm.soperator.io/template"]


async def test_what_slurmctld_forgets_is_set_again(town):
    """After it has read its files it has the weight of the registration; a slurmd that registers anew brings the features of its pod's start."""
    town.apply(kinds.NODESET, "worker", spec(features=["blue"], weight=5))
    await until(lambda: records(town)["worker-1"] == (["worker", "blue"], 5))
    town.slurm.nodes["worker-0"] |= {"weight": 1}
    town.slurm.nodes["worker-1"] |= {"weight": 1, "features": ["worker"]}
    await until(lambda: set(map(str, records(town).values())) == {str((["worker", "blue"], 5))})


async def test_other_fields_are_the_administrators(town):
    """A comment, a drain and whatever else scontrol sets stays; no request is made for it."""
    asked = len(town.slurm.asked)
    town.slurm.nodes["worker-0"] |= {
        "comment": "look at its fan",
        "active_features": ["worker", "seen"],
        "owner": "bob",
    }
    town.slurm.administrator("worker-1", "DRAIN", "bad disk")
    await town.settle(quiet=0.5)
    assert town.slurm.nodes["worker-0"]["comment"] == "look at its fan"
    assert town.slurm.nodes["worker-1"]["reason"] == "bad disk"
    assert "POST nodes/" not in town.slurm.asked[asked:]


async def test_a_partition_over_features_gets_its_nodes_again(town, scontrol):
    """slurmctld does not do it by itself; partitions over NodeSets alone need nothing, nor does a new weight."""
    town.apply(kinds.NODESET, "worker", spec(weight=5))
    await until(lambda: records(town)["worker-1"] == (["worker"], 5))
    await town.settle(quiet=0.5)
    assert scontrol.partitions == []
    town.apply(kinds.NODESET, "worker", spec(features=["blue"], weight=5))
    await until(lambda: scontrol.partitions)
    await town.settle(quiet=0.5)
    assert scontrol.partitions == ["fast"]
    assert "update PartitionName=fast Nodes=blue" in scontrol.said


async def test_a_partition_that_slurmctld_refused_is_tried_again(town, scontrol):
    """The NodeSet says so meanwhile."""
    scontrol.refused_partitions = 1000
    town.apply(kinds.NODESET, "worker", spec(features=["blue"]))
    await town.told(
        kinds.NODESET, "worker", "scontrol update PartitionName=fast Nodes=blue: slurm_update error: Socket timed out"
    )
    scontrol.refused_partitions, refused = 0, len(scontrol.partitions)
    await until(lambda: len(scontrol.partitions) > refused, 30.0)
    await town.settle(quiet=3.0)
    assert len(scontrol.partitions) == refused + 1
    assert town.status(kinds.NODESET, "worker")["why"] == ""


async def test_what_slurm_refuses_is_said_and_tried_again(town):
    """The pods stay as they are, and the sentence has Slurm's words."""
    before = uids(town)
    town.slurm.refuses_fields = "Access/permission denied"
    town.apply(kinds.NODESET, "worker", spec(weight=5))
    await town.told(kinds.NODESET, "worker", "worker-[0-1]: slurmrestd: POST nodes/: Access/permission denied")
    town.slurm.refuses_fields = ""
    await until(lambda: records(town)["worker-0"][1] == 5)
    assert uids(town) == before


async def test_a_plugin_of_slurms_keeps_its_features(scontrol):
    """Where it determines which features are active, only the weight is updated, and a new feature of the spec needs new pods."""
    town = Town()
    scontrol.slurm = town.slurm
    async with operating(town, execute=scontrol):
        lines = {"config": {"extraLines": {"slurm": "NodeFeaturesPlugins=node_features/helpers"}}}
        await town.up(CLUSTER | lines, {"worker": spec()})
        town.slurm.nodes["worker-0"]["features"] = ["worker", "mig"]
        before = uids(town)
        town.apply(kinds.NODESET, "worker", spec(weight=5))
        await until(lambda: records(town)["worker-1"] == (["worker"], 5))
        await town.settle(quiet=0.5)
        assert records(town)["worker-0"] == (["worker", "mig"], 5)
        assert uids(town) == before
        town.apply(kinds.NODESET, "worker", spec(weight=5, features=["blue"]))
        await town.told(kinds.NODESET, "worker", "(Feature=worker,blue")


async def test_nodes_that_sleep_keep_their_records(scontrol):
    """They are updated like those that are awake; only another size makes new records."""
    town = Town()
    scontrol.slurm = town.slurm
    async with operating(town, execute=scontrol):
        owl = {"clusterRef": {"name": "demo"}, "resources": SIZE, "powerSaving": {"maxNodes": 2}}
        await town.up(CLUSTER, {"owl": owl})
        await until(lambda: set(town.slurm.nodes) == {"owl-0", "owl-1"}, 30.0)
        said = len(scontrol.said)
        town.apply(kinds.NODESET, "owl", owl | {"features": ["blue"], "weight": 9})
        await until(lambda: records(town)["owl-1"] == (["owl", "blue"], 9))
        await town.settle(quiet=0.5)
        assert scontrol.said[said:] == []
        size = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
        town.apply(kinds.NODESET, "owl", owl | {"features": ["blue"], "weight": 9, "resources": size})
        await until(lambda: "delete NodeName=owl-[0-1]" in scontrol.said[said:], 30.0)


async def test_the_weight_of_an_awake_node_does_not_wait_for_its_job(scontrol):
    """A node that Slurm woke has the new weight while its job runs."""
    town = Town()
    scontrol.slurm = town.slurm
    async with operating(town, execute=scontrol):
        owl = {"clusterRef": {"name": "demo"}, "resources": SIZE, "powerSaving": {"maxNodes": 2}}
        await town.up(CLUSTER, {"owl": owl})
        await until(lambda: set(town.slurm.nodes) == {"owl-0", "owl-1"}, 30.0)
        scontrol.wake("owl-0")
        await until(lambda: town.find(kinds.POD, "demo-owl-0"))
        town.pods_run()
        scontrol.register("owl-0")
        await asyncio.sleep(1.0)
        town.apply(kinds.NODESET, "owl", owl | {"weight": 9})
        await until(lambda: {weight for _, weight in records(town).values()} == {9})
        assert "ALLOCATED" in town.slurm.nodes["owl-0"]["state"]
        assert town.find(kinds.POD, "demo-owl-0")["metadata"]["namespace"] == NS
