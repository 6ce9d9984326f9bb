"""What a topology makes of Slurm's files and of the workers' pods."""

from dataclasses import replace

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.policy.validation import cluster_problems, nodeset_problems
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import slurm_conf
from soperator.render.worker import pod as worker_pod
from tests.golden.cases import DEFAULTS

TREE = {"type": "Tree", "levels": ["example.com/spine", "example.com/rack"]}
BLOCK = {"type": "Block", "levels": ["example.com/rack"], "blockSizes": [2, 4]}


def own_tree(text):
    """A config with a topology.conf of one's own."""
    return {"files": [{"name": "topology.conf", "text": text}]}


def cluster(places, **spec):
    """A cluster whose nodes lie so."""
    return Cluster("ns", "demo", "1", SlurmClusterSpec.model_validate(spec), places=places)


def nodeset(**spec):
    """A NodeSet of it."""
    return NodeSet("ns", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **spec}))


def test_slurm_has_a_topology_as_soon_as_it_has_nodes():
    """Before that it would turn away every job; with blocks, slurm.conf names their spares."""
    assert "TopologyPlugin" not in slurm_conf.files(cluster({}, topology=TREE))["slurm.conf"]
    assert "topology.conf" not in slurm_conf.files(cluster({}, topology=TREE))
    tree = slurm_conf.files(cluster({"worker-0": ("s", "r")}, topology=TREE))
    assert "TopologyPlugin=topology/tree\n" in tree["slurm.conf"]
    assert "SwitchName=s.r Nodes=worker-0\n" in tree["topology.conf"]
    blocks = slurm_conf.files(cluster({"worker-0": ("r",)}, topology=BLOCK))["slurm.conf"]
    assert "TopologyPlugin=topology/block\n" in blocks
    assert "NodeName=soperator-spare-0-[0-1] State=FUTURE\n" in blocks


def test_a_file_of_ones_own_is_read_anew_for_each_node_that_comes():
    """It ends in a remark that makes it another file."""
    own = own_tree("SwitchName=a Nodes=worker-[0-9]")
    first = slurm_conf.files(cluster({}, config=own))["topology.conf"]
    assert first == "SwitchName=a Nodes=worker-[0-9]\n"
    assert slurm_conf.files(cluster({"worker-0": ()}, config=own))["topology.conf"] == f"{first}# read with worker-0\n"


def test_pods_wish_to_lie_close_and_none_is_replaced_for_the_wish():
    """The closest level weighs most, beside the affinity that the NodeSet has of its own; the template stays the same."""
    mine = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}, "nodeAffinity": {}}
    made, plain = nodeset(scheduling={"affinity": mine}), cluster({})
    wishing = cluster({}, topology=TREE)
    affinity = worker_pod.render_worker(wishing, made, 0, DEFAULTS)["spec"]["affinity"]
    wishes = affinity["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    keys = [(each["weight"], each.get("podAffinityTerm", {}).get("topologyKey", "")) for each in wishes]
    assert keys == [(1, ""), (100, "example.com/rack"), (50, "example.com/spine")]
    assert "nodeAffinity" in affinity
    assert worker_pod.template_hash(wishing, made, DEFAULTS) == worker_pod.template_hash(plain, made, DEFAULTS)


def test_a_place_is_where_nodes_run():
    """It is a node selector beside the NodeSet's own."""
    made = nodeset(topologyLabels={"example.com/rack": "r1"}, scheduling={"nodeSelector": {"pool": "a"}})
    pod = worker_pod.render_worker(cluster({}, topology=TREE), made, 0, DEFAULTS)
    assert pod["spec"]["nodeSelector"] == {"pool": "a", "example.com/rack": "r1"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"topology": {"type": "Block"}}, ("spec.topology.blockSizes", "set the number of nodes of a block")),
        ({"topology": TREE | {"blockSizes": [2]}}, ("spec.topology.blockSizes", "remove blockSizes with another type")),
        ({"topology": BLOCK | {"blockSizes": [4, 12]}}, ("spec.topology.blockSizes[1]", "12", "times 2, 4, 8")),
        ({"topology": BLOCK | {"blockSizes": [4, 4]}}, ("spec.topology.blockSizes[1]", "in ascending order")),
        ({"topology": {"type": "Tree", "levels": ["a", "a"]}}, ("spec.topology.levels[1]", "is already a level")),
        ({"topology": {"type": "Tree", "levels": ["kubernetes.io/arch"]}}, ("identifies a Node, not its location",)),
        (
            {"topology": TREE, "config": own_tree("SwitchName=a Nodes=b")},
            ("spec.config.files[0].name", "remove the file, or set topology.type to None"),
        ),
        (
            {"topology": TREE, "config": {"extraLines": {"slurm": "TopologyPlugin=topology/flat"}}},
            ("follows from spec.topology.type",),
        ),
        ({"config": own_tree("SwitchName=a Switches=a")}, ("spec.config.files[0].text, line 1", "is below itself")),
    ],
)
def test_a_topology_that_cannot_be_is_told(spec, words):
    """The problem names the field and the remedy."""
    read = SlurmClusterSpec.model_validate(spec)
    said = "\n".join(map(str, cluster_problems("demo", World({"demo": read}, {}))))
    assert [each for each in words if each not in said] == []


def test_a_place_of_another_topology_is_told():
    """A label that is no level, and any where there is no topology."""
    told = []
    for spec in ({"topology": TREE}, {}):
        read = SlurmClusterSpec.model_validate(spec)
        made = nodeset(topologyLabels={"example.com/row": "7"})
        told += nodeset_problems("worker", World({"demo": read}, {"worker": replace(made).spec}))
    assert "it is not a level of the cluster's topology: use one of example.com/spine" in str(told[0])
    assert "its cluster has no topology" in str(told[1])
