"""Nodes take their place in topology.conf from the Nodes under their pods."""

import pytest

from soperator.kube import kinds
from soperator.kube.exec import Result
from soperator.render.parts import labels
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating, until

CLUSTER = {
    "jail": {"claim": {"name": "demo-jail"}},
    "controller": {"state": {"name": "demo-state"}},
    "topology": {"type": "Tree", "levels": ["example.com/rack"]},
}


def label(town, machine, rack):
    """Make a Node that lies in a rack."""
    town.machine(machine)
    town.fake.world.change(kinds.NODE, ("", machine), {"metadata": {"labels": {"example.com/rack": rack}}})


def file(town):
    """The topology.conf that slurmctld mounts."""
    return town.find(kinds.CONFIGMAP, "demo-config")["data"].get("topology.conf", "")


def condition(town):
    """What the cluster says of it."""
    said = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return next(each["message"] for each in said if each["type"] == "TopologyKnown")


async def tried(town):
    """Wait until a new file is tried, and let it pass."""
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    town.trial_ends()


async def test_one_file_for_all_nodes_that_have_come():
    """Without a node there is none; two nodes make one change, a node without the label lies aside and is told, and one that moves is one more."""
    async with operating(Town()) as town:
        town.later = 0.0
        label(town, "one", "r1")
        town.machine("two")
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        assert file(town) == ""
        town.place("demo-worker-0", "one")
        town.place("demo-worker-1", "two")
        town.later += 5
        await tried(town)
        lines = "SwitchName=none Nodes=worker-1\nSwitchName=r1 Nodes=worker-0\nSwitchName=root Switches=none,r1\n"
        await until(lambda: file(town) == lines)
        await until(
            lambda: (
                "the location of worker-1 is unknown: it has no Node, or its Node lacks the label example.com/rack"
                in condition(town)
            )
        )
        label(town, "two", "r2")
        town.later += 60
        await tried(town)
        lines = "SwitchName=r1 Nodes=worker-0\nSwitchName=r2 Nodes=worker-1\nSwitchName=root Switches=r1,r2\n"
        await until(lambda: file(town) == lines)


def slurmctld_began(town, moment):
    """Let slurmctld's container run since then."""
    status = {"name": "slurmctld", "ready": True, "state": {"running": {"startedAt": moment}}}
    said = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [status],
    }
    town.fake.world.change(kinds.POD, (NS, "demo-controller-0"), {"status": said}, sub="status")


async def test_a_node_that_slurmctld_lost_unseen_leaves_the_file_and_comes_back():
    """slurmctld is asked once for each time that it read the file which nodes it found; for the one that it did not find it reads it twice more."""
    town, found, asked = Town(), ["worker-0", "worker-1"], []

    async def scontrol(_api, _target, command):
        asked.append(command[4:])
        return Result(0, f"SwitchName=root Level=1 LinkSpeed=1 Nodes={','.join(found)} Switches=r1\n", "")

    async with operating(town, execute=scontrol):
        town.later = 0.0
        label(town, "one", "r1")
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        slurmctld_began(town, "2026-01-01T00:00:00Z")
        both = "SwitchName=r1 Nodes=worker-[0-1]\nSwitchName=root Switches=r1\n"
        for name in ("demo-worker-0", "demo-worker-1"):
            town.place(name, "one")
        town.later += 5
        await tried(town)
        await until(lambda: asked)
        assert (file(town), asked) == (both, [["show", "topology", "root"]])
        found.remove("worker-1")
        town.later += 60
        slurmctld_began(town, "2026-01-01T00:10:00Z")
        await tried(town)
        await until(lambda: file(town) == both.replace("[0-1]", "0"))
        town.later += 60
        await tried(town)
        await until(lambda: file(town) == both and len(asked) == 4)


@pytest.mark.parametrize("note", ["no json", "null", "7", '[["worker-[0", "r1"]]', "[[3]]", '{"a": 1}'])
async def test_a_note_that_somebody_wrote_to_stops_no_pass(note):
    """An operator that begins anew decides from where the nodes lie now."""
    town = Town()
    async with operating(town):
        label(town, "one", "r1")
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        town.place("demo-worker-0", "one")
        town.later += 5
        await tried(town)
        await until(lambda: file(town))
        await town.settle(quiet=2)
    live = town.find(kinds.CONFIGMAP, "demo-config")
    live["metadata"]["annotations"][labels.PLACES] = note
    town.fake.world.replace(Where.at(kinds.CONFIGMAP, NS, "demo-config"), live, "kubectl")
    async with operating(town):
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"replicas": 2}})
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 2)
        assert file(town) == "SwitchName=r1 Nodes=worker-0\nSwitchName=root Switches=r1\n"
