"""A pod that does not get past its volumes or its sandbox: its Events say why, and so does the status."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}


def warning(uid, reason, message, at="2026-01-01T00:00:00Z"):
    """An Event of the kubelet's, or of the controller that attaches volumes."""
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{reason.lower()}-{at[-3:-1]}", "namespace": NS},
        "involvedObject": {"uid": uid}, "type": "Warning", "reason": reason, "message": message, "lastTimestamp": at,
    }  # fmt: skip


@pytest.fixture
async def town():
    """A cluster with one worker, and a second one whose pod is on a Node and does not start."""
    async with operating(Town()) as made:
        await made.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        made.machine("node-9")
        made.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2})
        await made.settle(quiet=0.3)
        made.place("demo-worker-1", "node-9")
        yield made


def uid(town):
    """That of the pod that does not start."""
    return town.find(kinds.POD, "demo-worker-1")["metadata"]["uid"]


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "jail" : mount failed: exit status 32\nOutput: nfs: server not responding',
            "a volume cannot be mounted: jail: mount failed: exit status 32 Output: nfs: server not responding",
        ),
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) demo-worker-0',
            'a volume cannot be attached: Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) demo-worker-0',
        ),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = Unknown desc = no address is free",
            "its sandbox cannot be created: no address is free",
        ),
        (
            "NetworkNotReady",
            "network is not ready: container runtime network not ready: NetworkReady=false",
            "its sandbox cannot be created: network is not ready: container runtime network not ready: NetworkReady=false",
        ),
        (
            "FailedPrepareDynamicResources",
            "Failed to prepare dynamic resources: no driver gpu.test is registered",
            "its devices cannot be prepared: Failed to prepare dynamic resources: no driver gpu.test is registered",
        ),
    ],
)
async def test_within_ten_seconds_the_status_says_why(town, reason, message, said):
    """Both columns begin with it, the NodeSet's and that of the cluster, and the conditions have all of it."""
    town.fake.world.seed(warning(uid(town), reason, message))
    began = asyncio.get_running_loop().time()
    for kind, name in ((kinds.NODESET, "worker"), (kinds.SLURMCLUSTER, "demo")):
        await town.told(kind, name, f"pod demo-worker-1: {said}", longest=10.0)
        assert f"pod demo-worker-1: {said.partition(':')[0]}" in town.status(kind, name)["why"]
    assert asyncio.get_running_loop().time() - began < 10
    ready = next(each for each in town.status(kinds.NODESET, "worker")["conditions"] if each["type"] == "Ready")
    assert said in ready["message"]


async def test_a_login_pod_says_it_too(town):
    """Every role has the sentence, whoever makes its pods."""
    town.place("demo-login-0", "node-9")
    starting = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
    town.fake.world.change(kinds.POD, (NS, "demo-login-0"), {"status": starting}, sub="status")
    town.fake.world.seed(
        warning(town.find(kinds.POD, "demo-login-0")["metadata"]["uid"], "FailedMount", "no such claim")
    )
    words = "login 0/1 ready: pod demo-login-0: a volume cannot be mounted: no such claim"
    await town.told(kinds.SLURMCLUSTER, "demo", words, longest=10.0)
    assert words in town.status(kinds.SLURMCLUSTER, "demo")["why"]


async def test_a_pod_that_no_node_takes_says_so_at_once(town):
    """The scheduler's words stand in the pod's status; no Event is read for them."""
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: taints"}
    status = {"phase": "Pending", "conditions": [unscheduled]}
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"spec": {"nodeName": ""}})
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"status": status}, sub="status")
    await town.told(kinds.NODESET, "worker", "pod demo-worker-1: no Node takes it: 0/3 nodes: taints", longest=5.0)


async def test_the_last_event_counts_and_a_long_one_is_cut(town):
    """A pod whose volume is attached by now may fail to mount it; a kubelet's list of all volumes is no sentence."""
    volumes = ", ".join(f"volume-{number}" for number in range(50))
    town.fake.world.seed(warning(uid(town), "FailedAttachVolume", "is attached elsewhere", "2026-01-01T00:00:01Z"))
    town.fake.world.seed(warning(uid(town), "FailedMount", f"Unable to mount: {volumes}", "2026-01-01T00:00:09Z"))
    await town.told(
        kinds.NODESET,
        "worker",
        "pod demo-worker-1: a volume cannot be mounted: Unable to mount: volume-0,",
        longest=10.0,
    )
    ready = next(each for each in town.status(kinds.NODESET, "worker")["conditions"] if each["type"] == "Ready")
    assert "volume-3" in ready["message"]
    assert "volume-20" not in ready["message"]


async def test_a_pod_that_starts_in_time_costs_no_request(town):
    """Events are read of a pod that has been starting for some seconds, and seldom then."""
    asked = [each for each in town.fake.requests if "involvedObject" in each.query.get("fieldSelector", "")]
    assert asked == []
    await town.settle(quiet=100.0, longest=100.0)
    asked = [each for each in town.fake.requests if uid(town) in each.query.get("fieldSelector", "")]
    assert 4 <= len(asked) <= 16
