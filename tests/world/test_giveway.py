"""Nodes that give way: somebody deletes a worker's pod, and its node is drained before the pod may go."""

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
KUBELET = {"metadata": {"finalizers": ["test/kubelet"]}}
POD = (NS, "demo-worker-0")


async def test_a_worker_that_is_to_make_room_is_drained_and_comes_back_under_its_name():
    """The job goes on, no other begins, and the pod that comes anew has a record of its own."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1, "preemptible": {}}})
        town.slurm.set("worker-0", "ALLOCATED")
        await town.settle()
        uid = town.find(kinds.POD, POD[1])["metadata"]["uid"]
        town.fake.world.change(kinds.POD, POD, KUBELET)  # it is there until its hook has ended
        town.fake.world.remove(kinds.POD, *POD)
        await until(lambda: "DRAIN" in town.slurm.nodes["worker-0"]["state"])
        assert town.slurm.nodes["worker-0"]["reason"] == "soperator: its pod gives way"
        await town.told(kinds.NODESET, "worker", "its pod gives way: worker-0")
        town.slurm.set("worker-0", "IDLE", "DRAIN", reason="soperator: its pod gives way")
        await town.settle(quiet=0.3)
        assert town.find(kinds.POD, POD[1])["metadata"]["uid"] == uid
        town.fake.world.change(kinds.POD, POD, {"metadata": {"finalizers": None}})
        await until(lambda: (pod := town.find(kinds.POD, POD[1])) and pod["metadata"]["uid"] != uid)
        await until(lambda: "worker-0" not in town.slurm.nodes)
        town.pods_run()
        await town.settle()
        assert "DRAIN" not in town.slurm.nodes["worker-0"]["state"]


async def test_a_worker_that_is_deleted_without_such_a_promise_is_not_drained():
    """Its pod ends within seconds, whatever Slurm is told."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        town.slurm.set("worker-0", "ALLOCATED")
        town.fake.world.change(kinds.POD, POD, KUBELET)
        town.fake.world.remove(kinds.POD, *POD)
        await town.settle(quiet=0.3)
        assert "DRAIN" not in town.slurm.nodes["worker-0"]["state"]
