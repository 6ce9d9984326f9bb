"""Deletions: jobs first, then pods, then the object; and a way out of each case in which waiting cannot help."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.fake_world import Fault, Where
from tests.world.harness import NS, Town, operating, until
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS

ENDING = ((kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker"))


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
    assert "the NodeSet is being deleted; workers left: " in town.says(kinds.NODESET, "worker")
    assert "worker-1 drains" in town.says(kinds.NODESET, "worker")
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
    assert "workers left: " in town.says(kinds.SLURMCLUSTER, "demo")
    assert "the cluster is being deleted" in town.says(kinds.NODESET, "worker")
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


async def test_a_controller_that_cannot_be_put_back_holds_the_jobs_until_a_person_gives_them_up(town):
    """Nobody is there who could be asked about them, and they may run."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    town.fake.faults.append(Fault("patch", "statefulsets", times=10**6))
    town.fake.world.remove(kinds.STATEFULSET, NS, "demo-controller")
    town.fake.world.remove(kinds.POD, NS, "demo-controller-0")
    for kind, name in ENDING:
        delete(town, kind, name)
    await asyncio.sleep(60)
    assert len(workers(town)) == 2
    assert "not all deleted objects are restored: 500" in town.says(kinds.SLURMCLUSTER, "demo")
    for kind, name in ENDING:
        town.fake.world.change(kind, (NS, name), {"metadata": {"annotations": {labels.ABANDON: "true"}}})
    for kind, name in ENDING:
        await gone(town, kind, name, seconds=30)


async def test_a_nodeset_without_cluster_and_slurmctld_holds_nothing_up(town):
    """Nobody is there who could be asked, and nobody puts a slurmctld back."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": {"finalizers": []}})
    town.fake.world.remove(kinds.SLURMCLUSTER, NS, "demo")
    town.fake.world.remove(kinds.STATEFULSET, NS, "demo-controller")
    town.fake.world.remove(kinds.POD, NS, "demo-controller-0")
    delete(town, kinds.NODESET, "worker")
    await gone(town, kinds.NODESET, "worker", seconds=30)
    assert workers(town) == []


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


async def test_a_deletion_may_end_jobs_where_the_policy_says_so(town):
    """The bound of a drain is the bound of a deletion."""
    drain = {"timeout": "0s", "onTimeout": "Cancel", "warningPeriod": "0s", "warningSignal": ""}
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1, "drain": drain}})
    town.slurm.run(7, "worker-0")
    delete(town, kinds.NODESET, "worker")
    await gone(town, kinds.NODESET, "worker", seconds=10)
    assert "DELETE job/7" in town.slurm.asked


async def test_a_refused_cluster_is_deleted_at_once(town):
    """What never had a child waits for nothing."""
    town.apply(kinds.SLURMCLUSTER, "demo", {"jail": {"claim": {"name": "nowhere"}}})
    await town.settle()
    assert "finalizers" not in town.find(kinds.SLURMCLUSTER, "demo")["metadata"]


UNREAD = {
    kinds.SLURMCLUSTER: ("demo", {"auth": {"type": "ofTheNextRelease"}}, "SlurmCluster demo: spec.auth.type"),
    kinds.NODESET: (
        "worker",
        {"clusterRef": {"name": "demo"}, "updateStrategy": {"type": "Later"}},
        "NodeSet worker: spec.updateStrategy.type",
    ),
}


@pytest.mark.parametrize("kind", UNREAD, ids=str)
async def test_a_spec_that_this_operator_cannot_read_holds_a_deletion(town, kind):
    """An operator that was rolled back finds a value of the newer one; nobody has said that the jobs may end."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.run(7, "worker-1")
    name, spec, field = UNREAD[kind]
    town.apply(kind, name, spec)
    await town.settle(quiet=0.3)
    delete(town, kinds.NODESET, "worker")
    await town.settle(quiet=0.5)
    assert "demo-worker-1" in workers(town)
    await town.told(kinds.NODESET, "worker", field)
    delete(town, kinds.SLURMCLUSTER, "demo")
    await town.settle(quiet=0.5)
    assert "demo-worker-1" in workers(town)
    town.fake.world.change(kinds.NODESET, (NS, "worker"), {"metadata": {"annotations": {labels.ABANDON: "true"}}})
    await gone(town, kinds.NODESET, "worker")
    await gone(town, kinds.SLURMCLUSTER, "demo")


async def test_a_statefulset_that_is_deleted_and_made_again_ends_no_job(town):
    """`kubectl delete statefulset --cascade=orphan` is the way round a field that cannot change; slurmctld runs on and answers."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.run(7, "worker-1")
    town.fake.faults.append(Fault("patch", "statefulsets", times=10**6))
    delete(town, kinds.NODESET, "worker")
    await town.settle(quiet=0.4)
    town.fake.world.delete(Where.at(kinds.STATEFULSET, NS, "demo-controller"), policy="Orphan")
    await town.settle(quiet=0.5)
    assert workers(town) == ["demo-worker-1"]


async def test_a_statefulset_that_is_put_back_late_holds_the_jobs_while_slurm_is_silent(town):
    """Also when its pod is gone too: the SlurmCluster is there, so slurmctld comes again and is asked."""
    await town.up(CLUSTER, WORKERS)
    town.fake.faults.append(Fault("patch", "statefulsets", times=10**6))
    town.slurm.down = True
    town.fake.world.delete(Where.at(kinds.STATEFULSET, NS, "demo-controller"), policy="Orphan")
    delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(60)
    assert len(workers(town)) == 2
    town.fake.world.remove(kinds.POD, NS, "demo-controller-0")
    await asyncio.sleep(60)
    assert len(workers(town)) == 2
    town.fake.faults.clear()
    await until(lambda: town.find(kinds.STATEFULSET, "demo-controller"), longest=600)
    town.slurm.down = False
    await gone(town, kinds.NODESET, "worker", seconds=60)


@pytest.mark.parametrize(("kind", "name"), [(kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker")], ids=str)
async def test_a_finalizer_that_somebody_removed_is_put_back(town, kind, name):
    """`kubectl replace` of a manifest without finalizers takes ours off; so do backups and some GitOps tools, more than once."""
    await town.up(CLUSTER, WORKERS)
    for _ in range(2):
        town.fake.world.change(kind, (NS, name), {"metadata": {"finalizers": []}})
        await town.settle(quiet=0.5)
        assert town.find(kind, name)["metadata"]["finalizers"] == [labels.FINALIZER]


async def test_a_finalizer_is_put_back_on_an_object_whose_spec_cannot_be_read(town):
    """That its workers run is reason enough."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.NODESET, "worker", UNREAD[kinds.NODESET][1])
    await town.settle(quiet=0.3)
    town.fake.world.change(kinds.NODESET, (NS, "worker"), {"metadata": {"finalizers": []}})
    await town.settle(quiet=0.5)
    assert town.find(kinds.NODESET, "worker")["metadata"]["finalizers"] == [labels.FINALIZER]


async def test_a_suspended_job_holds_a_deletion(town):
    """`scontrol suspend` leaves its node IDLE, with the job's processes in memory; the wait names the job, and ends when somebody cancels it."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.run(7, "worker-1")
    town.slurm.jobs[7]["job_state"] = ["SUSPENDED"]
    town.slurm.set("worker-1", "IDLE")
    delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(60)
    assert workers(town) == ["demo-worker-1"]
    assert "job 7" in town.says(kinds.NODESET, "worker")
    del town.slurm.jobs[7]
    await gone(town, kinds.NODESET, "worker", seconds=30)
