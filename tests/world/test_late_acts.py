"""Acts that come long after the look on which they were decided: a slow API server, a slow list of jobs, and what happened meanwhile."""

import asyncio

import httpx2
import pytest

from soperator.checks.check_state import CheckState
from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.fake_world import Fault
from tests.world.harness import NS, Town, operating, until
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER
from tests.world.test_health import CLUSTER as CHECKED
from tests.world.test_health import reports
from tests.world.test_refill import asked, job


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def wait(town, method, seconds):
    """Let the API server take so long for each pod that is made, or deleted, as with a webhook that does; returns an event that says that one is."""
    answer, begun = town.fake.handle_async_request, asyncio.Event()

    async def slow(request):
        if request.method == method and "/pods" in request.url.path:
            begun.set()
            await asyncio.sleep(seconds)
        return await answer(request)

    town.fake.handle_async_request = slow
    return begun


def uid(town, name):
    """The uid of a pod, or nothing where it is gone."""
    pod = town.find(kinds.POD, name)
    return pod and pod["metadata"]["uid"]


MANY = {"clusterRef": {"name": "demo"}, "replicas": 20, "updateStrategy": {"maxUnavailable": "100%"}}


async def test_a_pod_that_began_while_others_were_deleted_is_not_deleted_as_one_that_never_ran(town):
    """Its template is a former one; it was Pending when that was seen, and has a job by the time that its turn comes."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.apply(kinds.NODESET, "worker", MANY)
    await until(lambda: len(workers(town)) == 20)
    await asyncio.sleep(2)
    late, begun = uid(town, "demo-worker-9"), wait(town, "DELETE", 3.0)
    town.apply(kinds.NODESET, "worker", MANY | {"extraConf": "TmpDisk=7"})
    await begun.wait()
    town.pods_run()
    town.slurm.run(7, "worker-9")
    await asyncio.sleep(30)
    assert uid(town, "demo-worker-9") == late


async def test_a_drained_node_that_is_resumed_before_its_turn_comes_keeps_its_pod(town):
    """It goes for a rollout; the administrator who had drained it takes that back while others are deleted, and a job begins."""
    await town.up(CLUSTER, {"worker": MANY})
    for number in range(20):
        town.slurm.administrator(f"worker-{number}", "DRAIN", "a look at its disk")
    await asyncio.sleep(2)
    late, begun = uid(town, "demo-worker-9"), wait(town, "DELETE", 8.0)
    town.apply(kinds.NODESET, "worker", MANY | {"extraConf": "TmpDisk=7"})
    await begun.wait()
    town.slurm.administrator("worker-9", "RESUME")
    town.slurm.run(7, "worker-9")
    await asyncio.sleep(60)
    assert uid(town, "demo-worker-9") == late
    town.slurm.ends(7)
    await until(lambda: uid(town, "demo-worker-9") != late, longest=60)


async def test_what_goes_does_not_wait_for_the_pods_that_are_made(town):
    """An idle worker of a former template is gone while the others are still being made."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.slurm.administrator("worker-1", "DRAIN", "a look at its disk")
    await asyncio.sleep(2)
    late, begun = uid(town, "demo-worker-1"), wait(town, "POST", 60.0)
    spec = {
        "clusterRef": {"name": "demo"},
        "replicas": 40,
        "extraConf": "TmpDisk=7",
        "updateStrategy": {"maxUnavailable": "100%"},
    }
    town.apply(kinds.NODESET, "worker", spec)
    await begun.wait()
    await asyncio.sleep(5)
    assert uid(town, "demo-worker-1") != late


async def test_a_deletion_that_the_api_server_puts_off_is_decided_anew(town):
    """It is busy, and says when to come again: until then an administrator has resumed the node, and a job has begun."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.slurm.administrator("worker-1", "DRAIN", "a look at its disk")
    await asyncio.sleep(2)
    late = uid(town, "demo-worker-1")
    busy = Fault("delete", "pods", status=429, reason="TooManyRequests", message="slow down", retry_after=20, times=1)
    town.fake.faults.append(busy)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await until(lambda: busy.times == 0)
    town.slurm.administrator("worker-1", "RESUME")
    town.slurm.run(7, "worker-1")
    await asyncio.sleep(60)
    assert uid(town, "demo-worker-1") == late
    assert workers(town) == ["demo-worker-1"], "the idle one goes instead"


async def test_a_node_that_is_resumed_while_the_jobs_are_listed_keeps_its_pod(town):
    """The list takes seconds, and is of a moment before its job began."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.slurm.administrator("worker-1", "DRAIN", "a look at its disk")
    await asyncio.sleep(20)
    late, answer, asked = uid(town, "demo-worker-1"), town.slurm.handle_async_request, asyncio.Event()

    async def slow(request):
        said = await answer(request)
        if request.url.path.endswith("/jobs/"):
            asked.set()
            await asyncio.sleep(4.0)
        return said

    town.slurm.handle_async_request = slow
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await asked.wait()
    town.slurm.administrator("worker-1", "RESUME")
    town.slurm.run(7, "worker-1")
    await asyncio.sleep(30)
    assert uid(town, "demo-worker-1") == late


async def test_a_worker_whose_node_is_resumed_while_its_machine_is_cordoned_keeps_its_pod(town):
    """The API server takes long for a Node; its administrator knows better than the check meanwhile, and a job begins."""
    town.machine("rack-7")
    replaced = {**CHECKED, "health": {**CHECKED["health"], "replace": {"after": "0s"}}}
    await town.up(replaced, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.place("demo-worker-1", "rack-7")
    late, answer, begun = uid(town, "demo-worker-1"), town.fake.handle_async_request, asyncio.Event()

    async def slow(request):
        if request.method == "PATCH" and "/nodes/" in request.url.path:
            begun.set()
            await asyncio.sleep(20.0)
        return await answer(request)

    town.fake.handle_async_request = slow
    reports(town, "worker-1", CheckState("gpu-lost", "failing", town.wall(), "GPU 3 is lost", "replace"))
    await begun.wait()
    town.slurm.administrator("worker-1", "RESUME")
    town.slurm.run(7, "worker-1")
    await asyncio.sleep(60)
    assert uid(town, "demo-worker-1") == late


def is_made(town):
    """Whether the Job that overwrites the jail is there."""
    return job(town) is not None and job(town)["metadata"]["annotations"].get(labels.REQUEST) == "a"


@pytest.mark.parametrize("how", ["put off", "after others"])
async def test_a_jail_is_not_overwritten_under_a_job_that_began_before_its_job_was_made(town, how):
    """The API server puts the Job off, or what is written before it takes long; somebody has resumed a node by then."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
    await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
    begun, answer = asyncio.Event(), town.fake.handle_async_request

    async def slow(request):
        what = "/jobs/" if how == "put off" else "/configmaps/"
        if request.method == "DELETE" and "/jobs/" in request.url.path and how == "after others":
            town.fake.world.remove(kinds.CONFIGMAP, NS, "demo-login")
        if request.method == "PATCH" and what in request.url.path and not begun.is_set():
            begun.set()
            if how == "put off":
                refused = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "slow down"}
                return httpx2.Response(429, json=refused, headers={"Retry-After": "20"})
            await asyncio.sleep(20)
        return await answer(request)

    town.fake.handle_async_request = slow
    town.login_follows()
    await begun.wait()
    town.slurm.administrator("worker-1", "RESUME")
    town.slurm.run(7, "worker-1")
    await asyncio.sleep(60)
    assert "DRAIN" in town.slurm.nodes["worker-1"]["state"]
    assert not is_made(town)
    town.slurm.ends(7)
    await until(lambda: is_made(town), longest=60)


@pytest.mark.parametrize("when", ["before it drains", "before it resumes"])
async def test_an_overwrite_of_many_nodes_leaves_a_drain_alone_that_came_meanwhile(town, when):
    """slurmrestd takes a second for each; an administrator finds a bad disk before the turn of the last one comes."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 10}})
    begun, answer = asyncio.Event(), town.slurm.handle_async_request

    async def slow(request):
        if request.method == "POST" and "/node/" in request.url.path:
            begun.set()
            await asyncio.sleep(1.0)
        return await answer(request)

    if when == "before it drains":
        town.slurm.handle_async_request = slow
    town.apply(kinds.SLURMCLUSTER, "demo", asked(request="a", mode="Overwrite"))
    if when == "before it resumes":
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 0, longest=30)
        town.login_follows()
        await until(lambda: is_made(town), longest=30)
        town.slurm.handle_async_request = slow
        town.fill_jail()
    await begun.wait()
    await asyncio.sleep(2)
    town.slurm.administrator("worker-9", "DRAIN", "bad disk")
    await asyncio.sleep(40)
    assert ("DRAIN" in town.slurm.nodes["worker-9"]["state"], town.slurm.nodes["worker-9"]["reason"]) == (
        True,
        "bad disk",
    )
    assert ("DRAIN" in town.slurm.nodes["worker-8"]["state"]) == (when == "before it drains")
