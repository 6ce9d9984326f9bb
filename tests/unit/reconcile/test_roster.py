"""The roster: workers are read anew when something about them is new, and only then."""

from soperator.api.fields.change import Maintenance
from soperator.kube.objects import Node, NodeMeta, NodeSpec
from soperator.kube.views import ConditionView, ObjectMeta, Pod, PodSpec, PodStatus
from soperator.reconcile.cache.workers import WorkerCache
from soperator.render.parts import labels
from soperator.runtime.cache.store import Store, by_label
from soperator.slurm.node import SlurmNode

KEY, MAINTENANCE = ("ns", "w"), Maintenance()


def pod(index, version="1", ready="True"):
    said = {labels.NODESET: "w", labels.INDEX: str(index), labels.PROTECTED: "true"}
    meta = ObjectMeta(name=f"demo-w-{index}", namespace="ns", uid=f"u{index}", resource_version=version, labels=said)
    status = PodStatus(phase="Running", conditions=(ConditionView(type="Ready", status=ready),))
    return Pod(metadata=meta, spec=PodSpec(node_name="m", hostname=f"w-{index}"), status=status)


def machine(version="1", closed=False):
    return Node(metadata=NodeMeta(name="m", resource_version=version), spec=NodeSpec(unschedulable=closed))


class World:
    """Two workers on a Node, both idle in Slurm."""

    def __init__(self):
        self.pods = Store({"nodeset": by_label(labels.NODESET)})
        self.nodes, self.roster = Store(), WorkerCache()
        self.heard = {f"w-{index}": SlurmNode(f"w-{index}", frozenset({"IDLE"})) for index in range(2)}
        for index in range(2):
            self.pods.put(pod(index))
        self.nodes.put(machine())

    def read(self, maintenance=MAINTENANCE):
        return self.roster.read(KEY, self.pods, self.nodes, self.heard, maintenance)


def test_while_nothing_changes_nothing_is_read():
    """Not even a list is made."""
    world = World()
    assert world.read() is world.read()


def test_one_pods_change_is_one_workers_reading():
    """The other is the same object, and the sums are those of now."""
    world = World()
    first = world.read()
    world.pods.put(pod(1, "2", ready="False"))
    second = world.read()
    assert second.workers[0] is first.workers[0]
    assert (second.seen[1].ready, first.seen[1].ready) == (False, True)
    assert len(second.troubles) == len(first.troubles) + 1


def test_another_record_in_slurm_is_read():
    """Who drains counts as draining and is calm no more."""
    world = World()
    world.read()
    world.heard = {**world.heard, "w-0": SlurmNode("w-0", frozenset({"IDLE", "DRAIN"}))}
    crew = world.read()
    assert (crew.columns["draining"], crew.columns["idle"]) == (1, 1)


def test_a_node_that_is_closed_makes_its_workers_leave():
    """Its pods have not changed; what they lie on has."""
    world = World()
    assert world.read().machines["m"].leaving == ""
    world.nodes.put(machine("2", closed=True))
    assert "cordoned" in world.read().machines["m"].leaving
    assert world.read().settled == {}


def test_a_silence_and_other_wishes_change_every_reading():
    """Neither shows in any of the objects."""
    world = World()
    world.nodes.put(machine("2", closed=True))
    world.read()
    assert world.read(Maintenance(cordon=False)).machines["m"].leaving == ""
    world.heard = {}
    assert "has not registered" in world.read().troubles[0]
    world.heard = None
    assert not any("registered" in each for each in world.read().troubles)


def test_who_is_gone_is_forgotten():
    """Pods that went, and a NodeSet that did."""
    world = World()
    first = world.read()
    world.pods.drop(("ns", "demo-w-0"))
    assert list(world.read().seen) == [1]
    world.roster.forget(KEY)
    assert world.read().workers[0] is not first.workers[1]
