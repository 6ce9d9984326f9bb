"""What passes that cross, clusters that share a jail, and a claim that is gone do to jobs."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.world.harness import NS, Town, operating, until
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_refill import asked, job, ready

SICK = "soperator: jail: /mnt/jail/root does not answer within 5 s"


def stranger(town, role="worker", cluster="other"):
    """A pod of another cluster of the namespace, which runs."""
    said = {labels.CLUSTER: cluster, labels.ROLE: role, labels.MANAGED_BY: "soperator"}
    meta = {"name": f"{cluster}-{role}-0", "namespace": NS, "labels": said}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    town.fake.world.seed(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}, "status": status}
    )


async def test_a_pass_that_began_before_an_overwrite_opens_no_node_while_the_jail_is_replaced():
    """It waited for a worker's word on its jail, and then sees drains whose reasons are the operator's."""
    town, said, waits = Town(), asyncio.Event(), asyncio.Event()

    async def ask(_ip):
        waits.set()
        await said.wait()
        return SICK

    async with operating(town, ask) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 10}})
        opened, resume = [], town.slurm._resume
        town.slurm._resume = lambda node: (opened.append(node["name"]), resume(node))
        for number in range(9):
            town.jail_is(f"demo-worker-{number}", is_well=False)
        await asyncio.wait_for(waits.wait(), 30)
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
        town.login_follows()
        await until(
            lambda: (
                (job(town) or {"metadata": {"annotations": {}}})["metadata"]["annotations"].get(labels.REQUEST) == "a"
            ),
            longest=30,
        )
        said.set()
        await asyncio.sleep(20)
        assert opened == []


@pytest.mark.parametrize("role", ["worker", "login"])
async def test_an_overwrite_waits_for_the_pods_of_another_cluster_on_the_same_jail(role):
    """Clusters may share a jail, and the jobs and shells of the other one are in it."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        town.apply(kinds.SLURMCLUSTER, "other", {"jail": {"claim": {"name": "demo-jail"}}})
        stranger(town, role)
        await asyncio.sleep(5)
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await asyncio.sleep(20)
        assert labels.REQUEST not in job(town)["metadata"]["annotations"]
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
        assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
        assert f"SlurmCluster other has pods in the same jail, other-{role}-0" in ready(town)["message"]
        town.fake.world.remove(kinds.POD, NS, f"other-{role}-0")
        town.fake.world.remove(kinds.JOB, NS, "other-populate")
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=90)


async def test_a_state_that_is_gone_is_not_begun_anew_under_running_jobs():
    """slurmctld with an empty state ends the jobs that it does not know."""
    async with operating(Town()) as town:
        await town.up({"jail": {"claim": {"name": "demo-jail"}}}, WORKERS)
        town.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        town.fake.world.remove(kinds.PVC, NS, "demo-state")
        await asyncio.sleep(20)
        assert town.find(kinds.PVC, "demo-state") is None
        told = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["ClaimsKept"]
        assert (told["status"], told["reason"]) == ("False", "Gone")
        assert "bind the former volume to a new claim" in told["message"]


@pytest.mark.parametrize("how", ["by hand", "without workers"])
async def test_a_state_that_is_gone_comes_back(how):
    """A person makes the claim; or no worker is left, of whom it could end a job."""
    async with operating(Town()) as town:
        await town.up({"jail": {"claim": {"name": "demo-jail"}}}, WORKERS)
        town.fake.world.remove(kinds.PVC, NS, "demo-state")
        await asyncio.sleep(5)
        if how == "by hand":
            meta = {"name": "demo-state", "namespace": NS}
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": meta,
                "spec": {"volumeName": "pv-7"},
            }
            town.fake.world.seed(claim)
        else:
            town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
        await asyncio.sleep(90)
        assert town.find(kinds.PVC, "demo-state")
        told = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}
        assert told["ClaimsKept"]["status"] == "True"


@pytest.mark.parametrize("when", ["before it drains", "before it resumes"])
async def test_an_overwrite_leaves_a_drain_alone_that_the_last_poll_did_not_know_of(when):
    """An administrator finds a bad disk between two polls; his word is neither replaced by another reason nor taken back."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        if when == "before it resumes":
            town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
            await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
            town.login_follows()
            await until(lambda: job(town) and job(town)["metadata"]["annotations"].get(labels.REQUEST) == "a")
        await town.poll_no_more()
        town.slurm.administrator("worker-0", "DRAIN", "bad disk")
        if when == "before it resumes":
            town.fill_jail()
        else:
            town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await asyncio.sleep(5)
        assert (town.slurm.nodes["worker-0"]["state"], town.slurm.nodes["worker-0"]["reason"]) == (
            ["IDLE", "DRAIN"],
            "bad disk",
        )
        assert ("DRAIN" in town.slurm.nodes["worker-1"]["state"]) == (when == "before it drains")
