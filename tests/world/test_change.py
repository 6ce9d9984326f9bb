"""A cluster that changes while jobs run: scale-in, maintenance, lost Nodes, bounded drains, and an operator that knows nothing yet."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.world.harness import Town, operating, until
from tests.world.test_cluster import CLUSTER, WORKERS


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def workers(town):
    """The pods of workers."""
    return [name for name in town.names(kinds.POD) if "worker" in name]


def protection(town, name):
    """What keeps a pod from being evicted: our budget's label, and the autoscaler's annotation."""
    meta = town.find(kinds.POD, name)["metadata"]
    return meta["labels"][labels.PROTECTED], meta["annotations"][labels.SAFE_TO_EVICT]


async def test_an_idle_node_goes_before_a_busy_one_of_higher_number(town):
    """The job on worker-1 is no reason to wait, nor to be disturbed."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-1", "ALLOCATED")
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await town.settle(quiet=0.3)
    assert workers(town) == ["demo-worker-1"]
    assert sorted(town.slurm.nodes) == ["worker-1"]


async def test_a_busy_worker_of_a_scale_in_stays_when_slurm_is_silent_and_the_operator_is_new():
    """Its caches are cold and nobody answers: that is no leave to delete anything."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        town.slurm.set("worker-0", "ALLOCATED")
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
        await town.settle(quiet=0.3)
    town.slurm.down = True
    async with operating(town):
        await town.settle(quiet=0.5)
        assert workers(town) == ["demo-worker-0"]


async def test_a_cordoned_node_drains_its_worker_and_lets_it_be_evicted_when_the_job_has_ended(town):
    """Two writes on the pod in all: none while it is busy, and protection is back before its node takes jobs again."""
    town.machine("m")
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.place("demo-worker-0", "m")
    town.slurm.set("worker-0", "ALLOCATED")
    await town.settle(quiet=0.3)
    town.machine("m", unschedulable=True)
    await town.settle(quiet=0.3)
    assert town.slurm.nodes["worker-0"]["reason"] == "soperator: Node m is cordoned"
    assert protection(town, "demo-worker-0") == ("true", "false")
    town.slurm.nodes["worker-0"]["state"] = ["IDLE", "DRAIN"]
    await town.settle(quiet=0.3)
    assert protection(town, "demo-worker-0") == ("false", "true")
    assert "Node m is cordoned: worker-0 is drained" in town.says(kinds.NODESET, "worker")
    town.machine("m", unschedulable=False)
    await town.settle(quiet=0.3)
    assert protection(town, "demo-worker-0") == ("true", "false")
    assert "DRAIN" not in town.slurm.nodes["worker-0"]["state"]
    assert labels.DRAINED not in town.find(kinds.POD, "demo-worker-0")["metadata"]["annotations"]


async def test_an_administrators_drain_survives_a_cordon(town):
    """Its reason stays, before and after."""
    town.machine("m")
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.place("demo-worker-0", "m")
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="bad disk")
    for unschedulable in (True, False):
        town.machine("m", unschedulable=unschedulable)
        await town.settle(quiet=0.3)
        assert town.slurm.nodes["worker-0"]["reason"] == "bad disk"
    assert not any(each.startswith("POST node") for each in town.slurm.asked)


OURS = ["scale-in", "new pod template", "Node m is cordoned", "check disk: slow", "jail: stale", "no capacity: none"]


@pytest.mark.parametrize("reason", OURS)
@pytest.mark.parametrize("state", ["DRAIN", "DOWN"])
@pytest.mark.parametrize("by", ["root", ""], ids=["root", "nameless"])
async def test_a_persons_drain_whose_reason_is_worded_as_the_operators_stays(town, reason, state, by):
    """Slurm says who signed a reason: it is neither lifted, nor are jobs ended by it, nor is it signed by the operator as its own."""
    said = f"soperator: {reason}; its jobs end at 2026-01-01T00:00:00Z"
    town.machine("m")
    bounded = {"drain": {"timeout": "1m", "onTimeout": "Cancel"}}
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1, **bounded}})
    town.place("demo-worker-0", "m")
    if state == "DRAIN":
        town.slurm.run(7, "worker-0")
    town.slurm.administrator("worker-0", state, said, by)
    for unschedulable in (True, False):
        town.machine("m", unschedulable=unschedulable)
        await asyncio.sleep(30)
        assert state in town.slurm.nodes["worker-0"]["state"]
        node = town.slurm.nodes["worker-0"]
        assert node["reason_set_by_user"] == by or not node["reason"].startswith("soperator: ")
    assert state == "DOWN" or town.slurm.jobs[7]["job_state"] == ["RUNNING"]


async def test_a_node_that_slurmctld_drained_is_told_and_left_alone(town):
    """Nobody else would: it takes no job, and slurmctld never resumes it."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.slurm.set("worker-0", "IDLE", "DRAIN", "DYNAMIC_NORM", reason="Kill task failed")
    town.slurm.nodes["worker-0"]["reason_set_by_user"] = "slurm"
    await town.told(kinds.NODESET, "worker", "worker-0 is DRAIN+IDLE (Kill task failed): slurmctld drained it")
    await town.told(kinds.SLURMCLUSTER, "demo", "when the cause is gone, resume the node with scontrol")
    town.slurm.nodes["worker-0"]["reason"] = "Duplicate jobid"
    await town.told(kinds.NODESET, "worker", "slurmctld drained it; run scontrol reconfigure, then resume the node")
    town.slurm.nodes["worker-0"]["reason_set_by_user"] = "root"
    await town.settle(quiet=0.3)
    assert town.slurm.nodes["worker-0"]["reason"] == "Duplicate jobid"
    assert not any(each.startswith("POST node") for each in town.slurm.asked)


async def test_a_node_whose_heartbeats_change_nothing_wakes_nobody(town):
    """A Node reports in all the time."""
    town.machine("m")
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.place("demo-worker-0", "m")
    await town.settle(quiet=0.6)
    before = len(town.fake.requests)
    town.fake.world.change(kinds.NODE, ("", "m"), {"status": {"allocatable": {"cpu": "3"}}}, sub="status")
    await town.settle(quiet=0.3)
    assert town.fake.requests[before:] == []


async def test_a_worker_on_a_lost_node_is_replaced_under_a_new_name(town):
    """Kubernetes has not heard of the Node for five minutes, and Slurm has given it up."""
    town.machine("m")
    await town.up(CLUSTER, WORKERS)
    town.place("demo-worker-0", "m")
    town.machine("m", ready=False)
    town.slurm.set("worker-0", "DOWN", reason="Not responding")
    await town.settle(quiet=0.3)
    assert workers(town) == ["demo-worker-0", "demo-worker-1", "demo-worker-2"]
    assert "worker-0 is replaced by another" in town.says(kinds.NODESET, "worker")


async def test_a_bounded_drain_warns_and_then_ends_the_job(town):
    """First the signal, then the reason says until when, then the job ends and the node goes."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.slurm.run(7, "worker-0")
    drain = {"timeout": "1s", "onTimeout": "Cancel", "warningPeriod": "1s", "warningSignal": "USR1"}
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": drain})
    await town.settle(quiet=2.5)
    found = [each for each in town.slurm.asked if "worker-0" in each or "job/" in each]
    asked = [each for number, each in enumerate(found) if found[number - 1 : number] != [each]]  # a look may be twice
    pressed = ["GET job/7", "DELETE job/7"]  # looked at alone before it is warned, and before it is ended
    assert asked == ["POST node/worker-0", *pressed, "POST node/worker-0", *pressed, "DELETE node/worker-0"]
    assert workers(town) == []


@pytest.mark.parametrize("is_suspended", [True, False])
async def test_the_event_of_a_warning_names_jobs_that_no_signal_reaches(town, is_suspended):
    """Slurm signals no suspended job: its user sees no warning."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.slurm.run(7, "worker-0")
    if is_suspended:
        town.slurm.suspend(7)
    drain = {"timeout": "1s", "onTimeout": "Cancel", "warningPeriod": "1m", "warningSignal": "USR1"}
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": drain})
    await asyncio.sleep(30)
    events = [each for each in town.fake.world.objects.values() if each["kind"] == "Event"]
    (said,) = [each["note"] for each in events if each["reason"] == "JobsSignalled"]
    assert said.endswith("; the signal does not reach suspended job 7") == is_suspended


async def test_the_counts_of_a_nodeset_are_slurms(town):
    """How many are idle, busy, draining, down: in the status, for the columns of kubectl get -o wide."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 3}})
    town.slurm.set("worker-0", "MIXED")
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason="bad disk")
    await town.settle(quiet=0.4)
    await town.settle(quiet=4.0, longest=10)
    status = town.status(kinds.NODESET, "worker")
    assert [status[key] for key in ("updatedReplicas", "idle", "allocated", "draining", "down")] == [3, 1, 1, 1, 0]


def in_service(town, name):
    """What a pod's condition says of its Slurm node."""
    found = {each["type"]: each for each in town.find(kinds.POD, name)["status"]["conditions"]}
    said = found.get(labels.IN_SERVICE)
    return said and (said["status"], said["reason"], said["message"])


async def test_a_pod_tells_what_slurm_says_of_its_node_when_it_lasts(town):
    """An administrator's drain shows in `kubectl describe pod`; a node in service has cost no write."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.slurm.set("worker-0", "IDLE")
    await town.settle(quiet=0.3)
    assert in_service(town, "demo-worker-0") is None
    town.slurm.set("worker-0", "ALLOCATED", "DRAIN", reason="bad disk")
    await town.settle(quiet=0.3)
    assert in_service(town, "demo-worker-0") == ("False", "Draining", "bad disk")
    town.slurm.set("worker-0", "IDLE")
    await town.settle(quiet=0.3)
    assert in_service(town, "demo-worker-0") == ("True", "InService", "")


async def test_a_rollout_over_idle_nodes_costs_a_deletion_and_a_creation_each(town):
    """Besides those two there are only the status, which is paced, the plan and Events."""
    size = 8
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": size}})
    before = len(town.fake.writes())
    spec = {
        "clusterRef": {"name": "demo"},
        "replicas": size,
        "extraConf": "TmpDisk=7",
        "updateStrategy": {"maxUnavailable": "50%"},
    }
    town.apply(kinds.NODESET, "worker", spec)
    for _ in range(12):
        await town.settle()
        town.pods_run()
    await town.settle()
    assert town.status(kinds.NODESET, "worker")["readyReplicas"] == size
    assert all("TmpDisk=7" in str(town.find(kinds.POD, name)["spec"]) for name in workers(town))
    writes = [each for each in town.fake.writes()[before:] if " events " not in each]
    assert sum(" pods " in each for each in writes) == 2 * size, writes
    assert len(writes) <= 2 * size + 14, writes


async def test_slurmctld_writes_a_node_down_once_it_has_registered(town):
    """One update that changes nothing for all that are new, and none for what was written before."""
    await town.up(CLUSTER, WORKERS)
    for name in ("worker-0", "worker-1"):
        town.slurm.nodes[name]["slurmd_start_time"] = {"set": True, "number": 7}
    town.slurm.asked.clear()
    await town.settle(quiet=0.3)
    assert town.slurm.asked == ["POST node/worker-0"]
    assert not town.slurm.nodes["worker-0"].keys() - {
        "name",
        "features",
        "weight",
        "state",
        "reason",
        "slurmd_start_time",
    }
    town.slurm.nodes["worker-1"]["slurmd_start_time"]["number"] = 8
    await town.settle(quiet=0.3)
    assert town.slurm.asked == ["POST node/worker-0", "POST node/worker-1"]


async def test_a_scale_out_says_which_jobs_are_refused_meanwhile_and_what_queues_them(town):
    """slurmctld queues no job over more nodes than it knows, and it knows a node when that registers."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 4})
    said = "; Slurm knows 2 of 4 nodes and refuses jobs over more until the others register; sbatch --hold queues one"
    await until(lambda: available(town)["message"].endswith(said))
    assert "Slurm knows" not in town.status(kinds.NODESET, "worker")["why"]
    town.pods_run()
    await until(lambda: available(town)["message"] == "")


def available(town):
    """The condition of the NodeSet."""
    return next(each for each in town.status(kinds.NODESET, "worker")["conditions"] if each["type"] == "Available")
