"""Deletions: jobs first, then pods, then the object; and a way out of each case in which waiting cannot help."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.render import labels
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def delete(town, kind, name):
    """What `kubectl delete --wait=false` does: the object stays while it has a finalizer."""
    town.fake.world.delete(Where.at(kind, NS, name))


async def gone(town, kind, name, seconds=6.0):
    """Wait until an object is gone."""
    async with asyncio.timeout(seconds):
        while town.find(kind, name):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_deleted_nodeset_waits_for_its_job_and_then_takes_pods_and_records_along(town):
    """It says what it waits for; the idle worker goes at once, the busy one when its job has ended."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-1", "ALLOCATED")
    delete(town, kinds.NODESET, "worker")
    await town.settle(quiet=0.4)
    assert workers(town) == ["demo-worker-1"]
    assert town.slurm.nodes["worker-1"]["reason"] == "soperator: the NodeSet is being deleted"
    assert "the NodeSet is being deleted; workers left: " in town.status(kinds.NODESET, "worker")["why"]
    assert "worker-1 drains" in town.status(kinds.NODESET, "worker")["why"]
    town.slurm.nodes["worker-1"]["state"] = ["IDLE", "DRAIN"]
    await gone(town, kinds.NODESET, "worker")
    assert (workers(town), town.slurm.nodes) == ([], {})


async def test_a_deleted_cluster_keeps_its_controller_until_its_workers_are_gone(town):
    """The NodeSet stays, without workers; slurmctld is nobody's business before that."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-0", "MIXED")
    delete(town, kinds.SLURMCLUSTER, "demo")
    await town.settle(quiet=0.4)
    assert workers(town) == ["demo-worker-0"]
    assert "workers left: " in town.status(kinds.SLURMCLUSTER, "demo")["why"]
    assert "the cluster is being deleted" in town.status(kinds.NODESET, "worker")["why"]
    town.slurm.nodes["worker-0"]["state"] = ["IDLE", "DRAIN"]
    await gone(town, kinds.SLURMCLUSTER, "demo")
    assert workers(town) == []
    assert town.find(kinds.NODESET, "worker")


async def test_an_operator_that_was_away_finishes_a_deletion():
    """Whoever deletes while it is away finds the object kept, and the job alive, until it is back."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    delete(town, kinds.NODESET, "worker")
    assert town.find(kinds.NODESET, "worker")
    async with operating(town):
        await gone(town, kinds.NODESET, "worker")
    assert (workers(town), town.slurm.nodes) == ([], {})


async def test_a_controller_that_is_gone_for_good_holds_nothing_up(town):
    """Nobody is there who could be asked, and no job that could be known."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    town.fake.world.remove(kinds.STATEFULSET, NS, "demo-controller")
    delete(town, kinds.SLURMCLUSTER, "demo")
    delete(town, kinds.NODESET, "worker")
    await gone(town, kinds.SLURMCLUSTER, "demo")
    await gone(town, kinds.NODESET, "worker")


async def test_a_namespace_that_terminates_ends(town):
    """Kubernetes takes pods and daemons away beneath the operator; none is made anew, and both objects go."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    for kind, name in ((kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker"), (kinds.DEPLOYMENT, "demo-rest")):
        delete(town, kind, name)
    for name in town.names(kinds.POD):
        town.fake.world.remove(kinds.POD, NS, name)
    await gone(town, kinds.NODESET, "worker", seconds=10)
    await gone(town, kinds.SLURMCLUSTER, "demo", seconds=10)
    assert workers(town) == []


async def test_while_slurm_is_silent_a_deletion_waits_and_a_person_can_give_the_jobs_up(town):
    """No answer means busy; the annotation is the way out."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    delete(town, kinds.NODESET, "worker")
    await town.settle(quiet=0.6)
    assert len(workers(town)) == 2
    town.fake.world.change(kinds.NODESET, (NS, "worker"), {"metadata": {"annotations": {labels.ABANDON: "true"}}})
    await gone(town, kinds.NODESET, "worker")


@pytest.mark.time_of_day
async def test_a_deletion_may_end_jobs_where_the_policy_says_so(town):
    """The bound of a drain is the bound of a deletion."""
    drain = {"maxWait": "0s", "then": "Cancel", "warnBefore": "0s", "signal": ""}
    await town.up(CLUSTER, {"worker": {"cluster": "demo", "replicas": 1, "drain": drain}})
    town.slurm.run(7, "worker-0")
    delete(town, kinds.NODESET, "worker")
    await gone(town, kinds.NODESET, "worker", seconds=10)
    assert "DELETE job/7" in town.slurm.asked


async def test_a_refused_cluster_is_deleted_at_once(town):
    """What never had a child waits for nothing."""
    town.apply(kinds.SLURMCLUSTER, "demo", {"jail": {"claim": {"name": "nowhere"}}})
    await town.settle()
    assert "finalizers" not in town.find(kinds.SLURMCLUSTER, "demo")["metadata"]
