"""The jail is filled, repaired and replaced by a Job, and the cluster says how that does."""

import asyncio
import json

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def asked(**refill):
    """The cluster with a request."""
    return CLUSTER | {"jail": CLUSTER["jail"] | {"refill": refill}}


def ready(town):
    """The condition JailReady."""
    conditions = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return next(each for each in conditions if each["type"] == "JailReady")


def job(town):
    """The populate Job."""
    return town.find(kinds.JOB, "demo-populate")


def ended(container, code, message):
    """The status of a pod in which a container ended."""
    state = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
    kind = "containerStatuses" if container == "seal" else "initContainerStatuses"
    return {"phase": "Failed" if code else "Succeeded", kind: [{"name": container, "state": state}]}


async def test_a_failed_attempt_is_told_with_its_last_words(town):
    """While the Job tries again the condition has the reason of the newest attempt, and when it gives up says what to do."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    await town.settle(quiet=0.6)
    words = "soperator: Copying / failed: No space left on device; 0 are free on the claim."
    town.populate_pod("demo-populate-a", job(town)["metadata"]["uid"], ended("copy", 1, words))
    failed = {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}
    town.fake.world.change(kinds.JOB, (NS, "demo-populate"), {"status": {"conditions": [failed]}}, sub="status")
    await town.settle()
    assert (ready(town)["status"], ready(town)["reason"]) == ("False", "Failed")
    assert words in ready(town)["message"]
    assert ready(town)["message"].endswith("fix the cause, then delete the Job to try again")


async def test_a_corrected_image_replaces_a_job_that_cannot_fill(town):
    """A Job that waits for an image that does not exist is made anew when the spec names another one, after its pod is gone."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"jail": CLUSTER["jail"] | {"image": "no/such:1"}})
    await town.settle()
    old = job(town)["metadata"]["uid"]
    town.populate_pod("demo-populate-a", old, {"phase": "Pending"})
    town.fake.world.objects[next(key for key in town.fake.world.objects if key[3] == "demo-populate-a")]["metadata"][
        "ownerReferences"
    ] = []
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"jail": CLUSTER["jail"] | {"image": "good:1"}})
    await town.settle()
    assert job(town) is None
    town.fake.world.remove(kinds.POD, NS, "demo-populate-a")
    await town.settle()
    assert job(town)["spec"]["template"]["spec"]["initContainers"][1]["image"] == "good:1"


async def test_another_image_in_the_spec_of_a_filled_jail_is_told_and_changes_nothing(town):
    """JailReady stays True, names both images and where to read on."""
    await town.up(CLUSTER, WORKERS)
    record = json.dumps({"image": "registry.test/jail:1", "files": 5})
    town.populate_pod("demo-populate-a", job(town)["metadata"]["uid"], ended("seal", 0, record))
    before = job(town)["metadata"]["uid"]
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"jail": CLUSTER["jail"] | {"image": "newer:2"}})
    await town.settle()
    said = ready(town)
    assert (said["status"], said["reason"]) == ("True", "FilledFromAnother")
    assert said["message"].startswith(
        "filled from registry.test/jail:1; the cluster's image is newer:2, which does not change"
    )
    assert "upgrade-the-jail.md" in said["message"]
    assert job(town)["metadata"]["uid"] == before


async def test_gaps_are_filled_beside_everything_that_runs(town):
    """A request of mode Missing makes a new Job, once, and drains nothing."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a"))
    await town.settle()
    assert job(town)["metadata"]["annotations"]["slurm.soperator.io/request"] == "a"
    assert ready(town)["status"] == "True"
    assert town.status(kinds.SLURMCLUSTER, "demo")["conditions"][0]["status"] == "True"
    town.fill_jail()
    await town.settle(quiet=0.6, longest=12)
    assert town.status(kinds.SLURMCLUSTER, "demo")["refilled"] == "a"
    uid = job(town)["metadata"]["uid"]
    town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
    await town.settle()
    assert job(town)["metadata"]["uid"] == uid
    assert not any("POST node" in each for each in town.slurm.asked)


async def test_an_overwrite_drains_waits_closes_fills_and_resumes():
    """Each step waits for the one before it, an operator that restarts at each goes on, and at the end all is as it was."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.slurm.set("worker-1", "ALLOCATED")
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await town.settle(quiet=0.3)
        assert {"POST node/worker-0", "POST node/worker-1"} <= set(town.slurm.asked)
        assert ready(town)["status"] == "True"
        assert "request a, to fill it again," in ready(town)["message"]
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
        assert "request a" in town.says(kinds.NODESET, "worker")
    reason = "soperator: the jail is to be filled again"
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason=reason)
    async with operating(town):
        await town.settle(quiet=0.3)
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0
        assert (ready(town)["status"], ready(town)["reason"]) == ("False", "Overwriting")
        assert "slurm.soperator.io/request" not in job(town)["metadata"]["annotations"]
    town.login_follows()
    async with operating(town):
        await town.settle(quiet=0.3)
        assert job(town)["metadata"]["annotations"]["slurm.soperator.io/request"] == "a"
        town.fake.world.remove(kinds.POD, NS, "demo-worker-0")
        await town.settle(quiet=0.3)
        assert "demo-worker-0" not in town.names(kinds.POD)
        assert "POST node/worker-0" in town.slurm.asked
        town.fill_jail()
        await town.settle(quiet=0.6, longest=12)
        town.pods_run()
        await town.settle(quiet=0.3)
    assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    assert town.slurm.nodes["worker-1"]["state"] == ["IDLE"]
    assert "demo-worker-0" in town.names(kinds.POD)
    assert town.status(kinds.SLURMCLUSTER, "demo")["refilled"] == "a"
    async with operating(town):
        town.fake.world.remove(kinds.JOB, NS, "demo-populate")
        await town.settle(quiet=0.3)
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
        assert "slurm.soperator.io/request" not in job(town)["metadata"]["annotations"]


@pytest.mark.parametrize("is_status_lost", [False, True])
async def test_a_request_that_returns_drains_nothing_and_is_reported(is_status_lost):
    """After a rollback of the spec neither an overwrite nor an upgrade begins again, whatever the operator or the status lost."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        for word in ("a", "b"):
            town.apply(kinds.SLURMCLUSTER, "demo", asked(request=word) | {"upgrade": {"request": word}})
            await town.settle()
            town.fill_jail()
            await town.settle(quiet=0.6, longest=12)
        status = town.status(kinds.SLURMCLUSTER, "demo")
        assert status["completedRequests"] == {"refill": ["a", "b"], "upgrade": ["a", "b"]}
        town.slurm.asked.clear()
    if is_status_lost:
        town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"status": None}, sub="status")
    async with operating(town):
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite") | {"upgrade": {"request": "a"}})
        await town.settle(quiet=0.6)
    assert not [each for each in town.slurm.asked if "POST node" in each]
    assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
    assert job(town)["metadata"]["annotations"]["slurm.soperator.io/request"] == "b"
    assert ready(town)["status"] == "True"
    assert "spec.jail.refill.request a was carried out before" in ready(town)["message"]
    status = town.status(kinds.SLURMCLUSTER, "demo")
    told = next(each for each in status["conditions"] if each["type"] == "UpToDate")
    assert (told["status"], told["message"].split(" was ")[0]) == ("True", "spec.upgrade.request a")
    assert status["images"]["request"] == "b"


async def test_the_job_of_an_overwrite_waits_for_a_fresh_look_at_slurm(town):
    """A node that takes jobs again since the last poll keeps login open, and the Job from being made."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="soperator: the jail is to be filled again")
    await town.settle(quiet=0.3)
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="maintenance")
    await town.settle(quiet=0.3)
    await town.poll_no_more()
    town.slurm.set("worker-0", "ALLOCATED")
    town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
    await town.settle(quiet=0.3)
    assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="maintenance")
    await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
    town.slurm.set("worker-0", "ALLOCATED")
    town.login_follows()
    await town.settle(quiet=0.3)
    assert "slurm.soperator.io/request" not in job(town)["metadata"]["annotations"]


async def test_an_overwrite_waits_for_a_suspended_job():
    """Its node is drained to Slurm, but its processes are in memory, with files of the jail open: login stays open, and no Job is made."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.slurm.run(7, "worker-1")
        town.slurm.jobs[7]["job_state"] = ["SUSPENDED"]
        town.slurm.set("worker-1", "IDLE")
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await asyncio.sleep(30)
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1
        assert "the jobs on worker-1" in ready(town)["message"]
        del town.slurm.jobs[7]
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)


async def test_an_overwrite_leaves_a_node_down_that_an_administrator_set_down():
    """It is drained with his reason, so that it does not come back meanwhile, and is not resumed: Slurm would lift DOWN with the drain."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        town.slurm.administrator("worker-1", "DOWN", "bad disk")
        town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
        town.login_follows()
        await until(lambda: job(town) and job(town)["metadata"]["annotations"].get("slurm.soperator.io/request") == "a")
        town.fill_jail()
        await until(lambda: town.slurm.nodes["worker-0"]["state"] == ["IDLE"], longest=30)
        await asyncio.sleep(10)
        node = town.slurm.nodes["worker-1"]
        assert ("DOWN" in node["state"], node["reason"]) == (True, "bad disk")
