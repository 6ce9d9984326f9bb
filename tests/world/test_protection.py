"""What protects jobs where passes meet Kubernetes and Slurm: the conditions that tests/mutants takes out one by one."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.kube.exec import Result
from tests.world.harness import NS, Town, operating, until
from tests.world.scontrol import Scontrol
from tests.world.test_cluster import CLUSTER

ONE = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}}
AT_ONCE = {"timeout": "0s", "warningPeriod": "0s", "warningSignal": ""}


async def test_a_pod_is_deleted_by_its_uid():
    """A new pod that got the name meanwhile is another one, and Kubernetes refuses."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, ONE)
        uid = town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"]
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
        await until(lambda: town.find(kinds.POD, "demo-worker-0") is None)
        asked = [each for each in town.fake.requests if each.verb == "delete" and each.where.name == "demo-worker-0"]
        assert [each.body["preconditions"]["uid"] for each in asked] == [uid]


async def test_of_two_jobs_only_the_batch_job_is_requeued():
    """An interactive one cannot be: it is cancelled, so that the drain comes to its end."""
    town = Town()
    inside = Scontrol(town.slurm)
    async with operating(town, execute=inside):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        town.slurm.run(7, "worker-0", requeue=True, batch=True)
        town.slurm.run(8, "worker-1", requeue=True, batch=False)
        drain = AT_ONCE | {"onTimeout": "Requeue"}
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": drain})
        await until(lambda: not [each for each in town.names(kinds.POD) if "worker" in each], longest=30.0)
        assert (town.slurm.jobs[7]["job_state"], town.slurm.jobs[8]["job_state"]) == (["PENDING"], ["CANCELLED"])
        assert [each for each in inside.said if each.startswith("requeue")] == ["requeue 7 worker-0"]


async def test_a_job_that_cannot_be_requeued_holds_up_no_other_of_its_node():
    """Slurm says no to one, which is told; the other waits for its turn again."""
    town = Town()
    inside = Scontrol(town.slurm)

    async def execute(api, target, command):
        return Result(1, "", "no") if command[4:6] == ["requeue", "7"] else await inside(api, target, command)

    async with operating(town, execute=execute):
        await town.up(CLUSTER, ONE)
        for number in (7, 8):
            town.slurm.run(number, "worker-0", requeue=True, batch=True)
        town.apply(
            kinds.NODESET,
            "worker",
            {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": AT_ONCE | {"onTimeout": "Requeue"}},
        )
        await until(lambda: town.slurm.jobs[8]["job_state"] == ["PENDING"], longest=30.0)
        assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]
        await town.told(kinds.NODESET, "worker", "scontrol requeue 7: no", longest=30.0)


@pytest.mark.parametrize(("then", "becomes"), [("Cancel", "CANCELLED"), ("Requeue", "PENDING")])
async def test_a_task_of_an_array_is_ended_alone(then, becomes):
    """The last task has the number of the array, by which Slurm takes all its tasks: one on another node is neither warned nor ended with it."""
    town = Town()
    async with operating(town, execute=Scontrol(town.slurm)):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        (other, last) = town.slurm.run_array(7, "worker-0", "worker-1", requeue=True, batch=True)
        drain = AT_ONCE | {"onTimeout": then, "warningSignal": "USR1"}
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1, "drain": drain})
        await until(lambda: "demo-worker-1" not in town.names(kinds.POD), longest=30.0)
        states = [town.slurm.jobs[each]["job_state"] for each in (other, last)]
        assert (states, set(town.slurm.signalled)) == ([["RUNNING"], [becomes]], {last})


@pytest.mark.parametrize(("then", "becomes"), [("Cancel", "CANCELLED"), ("Requeue", "PENDING")])
async def test_a_heterogeneous_job_ends_as_a_whole(then, becomes):
    """A component that is not the leader is on the drained node: the leader does not run on without it, and is warned and ended with it."""
    town = Town()
    async with operating(town, execute=Scontrol(town.slurm)):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        numbers = town.slurm.run_het(7, "worker-0", "worker-1", requeue=True)
        drain = AT_ONCE | {"onTimeout": then, "warningSignal": "USR1"}
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1, "drain": drain})
        await until(lambda: "demo-worker-1" not in town.names(kinds.POD), longest=30.0)
        states = [town.slurm.jobs[each]["job_state"] for each in numbers]
        assert (states, set(town.slurm.signalled)) == ([[becomes], [becomes]], set(numbers))


async def test_a_job_of_two_nodes_keeps_both_workers_until_it_has_ended():
    """The drain of one waits for the job, whose other node stays in service."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        town.slurm.run(7, "worker-0", "worker-1", requeue=True, batch=True)
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
        await until(lambda: "DRAIN" in town.slurm.nodes["worker-1"]["state"])
        await town.settle(quiet=0.5)
        assert {"demo-worker-0", "demo-worker-1"} <= set(town.names(kinds.POD))
        assert "DRAIN" not in town.slurm.nodes["worker-0"]["state"]
        town.slurm.epilog = 5.0
        town.slurm.ends(7)
        await asyncio.sleep(3.0)
        assert "COMPLETING" in town.slurm.nodes["worker-1"]["state"]
        assert "demo-worker-1" in town.names(kinds.POD)
        await until(lambda: "demo-worker-1" not in town.names(kinds.POD))


async def test_a_node_that_an_administrator_set_down_stays_so_through_a_rollout():
    """The operator neither resumes it nor takes over its reason, before its new pod comes and after."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, ONE)
        town.slurm.administrator("worker-0", "DOWN", "bad disk")
        before = town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"]
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1, "extraConf": "TmpDisk=7"})
        await until(lambda: (pod := town.find(kinds.POD, "demo-worker-0")) and pod["metadata"]["uid"] != before, 30.0)
        town.pods_run()
        await asyncio.sleep(10.0)
        node = town.slurm.nodes["worker-0"]
        assert (node["reason"], "DOWN" in node["state"]) == ("bad disk", True)


async def test_a_quiet_slurm_is_asked_for_its_nodes_only_now_and_then():
    """All other questions are answered with 304."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, ONE)
        await asyncio.sleep(20.0)
        before = town.slurm.unchanged
        await asyncio.sleep(5.0)
        assert town.slurm.unchanged - before > 50
        town.slurm.administrator("worker-0", "DRAIN", "bad disk")
        await until(lambda: town.status(kinds.NODESET, "worker")["draining"] == 1)


async def test_a_token_that_slurm_does_not_take_is_told():
    """Nothing is known of nodes then, and so nothing is done to them."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, ONE)
        town.slurm.key = b"another key"
        await town.told(kinds.SLURMCLUSTER, "demo", "it rejects the operator's token", longest=30.0)
        asked = len(town.slurm.asked)
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
        await asyncio.sleep(20.0)
        assert town.fake.world.find(kinds.POD, NS, "demo-worker-0")
        assert town.slurm.asked[asked:] == []
