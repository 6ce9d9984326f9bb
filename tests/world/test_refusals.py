"""What the API server refuses holds up nothing else, is tried again, and is reported in its own words."""

import asyncio
from itertools import count

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from soperator.runtime import log
from tests.unit.fake_world import Fault, Refusal
from tests.world.harness import NS, Town, operating, until
from tests.world.test_cluster import CLUSTER, WORKERS

LOGIN = CLUSTER | {"login": {"service": {"type": "ClusterIP"}}}


@pytest.fixture
async def town():
    """An operator that runs over empty fakes, with its own log: a traceback of each try would take seconds otherwise."""
    log.configure()
    async with operating(Town()) as made:
        yield made


async def test_a_quota_that_lets_no_pod_in_holds_up_no_drain(town):
    """A Node is cordoned while a third worker cannot be made; the refusal is reported, with the pod."""
    town.machine("m")
    await town.up(CLUSTER, WORKERS)
    town.place("demo-worker-0", "m")
    await town.settle(quiet=0.3)
    why = 'pods "demo-worker-2" is forbidden: exceeded quota'
    town.fake.faults.append(Fault("create", "pods", 403, "Forbidden", why, times=10**6))
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 3})
    await town.settle(quiet=0.3)
    town.machine("m", unschedulable=True)
    await until(lambda: "DRAIN" in town.slurm.nodes["worker-0"]["state"])
    await town.told(kinds.NODESET, "worker", "exceeded quota")
    asked = len(town.fake.asked("create"))
    await asyncio.sleep(60)
    assert len([each for each in town.fake.asked("create")[asked:] if "pods" in each]) <= 6
    town.fake.faults.clear()
    await until(lambda: town.find(kinds.POD, "demo-worker-2"), longest=310)


async def test_labels_that_may_not_be_put_back_hold_up_nothing_else(town):
    """A policy protects the labels of pods, also those that somebody could edit before: the NodeSet still grows, and an Event names the refusal."""
    await town.up(CLUSTER, WORKERS)
    town.fake.faults.append(Fault("patch", "pods", 403, "Forbidden", "labels are protected", times=10**6))
    edited = {"metadata": {"labels": {labels.ROLE: "login"}}}
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), edited)
    await asyncio.sleep(3)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 3})
    await until(lambda: town.find(kinds.POD, "demo-worker-2"))
    said = [each.body["note"] for each in town.fake.requests if str(each).startswith("create events")]
    assert any("demo-worker-1 has edited labels" in each and "labels are protected" in each for each in said)
    town.fake.faults.clear()
    await until(lambda: town.find(kinds.POD, "demo-worker-1")["metadata"]["labels"][labels.ROLE] == "worker")


async def test_what_a_policy_refuses_is_tried_again(town):
    """A ValidatingAdmissionPolicy answers 422, as a schema does; its author corrects it, and nothing of ours changes."""
    await town.up(CLUSTER, WORKERS)
    town.fake.faults.append(
        Fault("patch", "services", 422, "Invalid", "ValidatingAdmissionPolicy 'x' denied request", times=4)
    )
    town.apply(kinds.SLURMCLUSTER, "demo", LOGIN)
    await until(lambda: town.find(kinds.SERVICE, "demo-login")["spec"]["type"] == "ClusterIP", longest=1000)


async def test_a_forbidden_deletion_is_reported_in_words(town):
    """Several go side by side; the sentence is that of the first, and not Python's for a group of errors."""
    await town.up(CLUSTER, WORKERS)
    owner = {"apiVersion": "slurm.soperator.io/v1alpha1", "kind": "SlurmCluster", "name": "demo"}
    owner |= {"uid": town.find(kinds.SLURMCLUSTER, "demo")["metadata"]["uid"], "controller": True}
    meta = {"name": "demo-stray", "namespace": NS, "labels": labels.cluster("demo"), "ownerReferences": [owner]}
    town.fake.faults.append(Fault("delete", "configmaps", 403, "Forbidden", "policy says no", times=10**6))
    town.fake.world.seed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await town.told(kinds.SLURMCLUSTER, "demo", "policy says no")


async def test_a_refusal_with_other_words_each_time_is_tried_ever_more_slowly(town):
    """A webhook's error names a port; the status says so each time, and its event does not wake the pass at once."""
    await town.up(CLUSTER, WORKERS)
    numbers, before = count(), town.fake._misbehave

    def misbehave(asked):
        if asked.verb == "patch" and asked.where.plural == "services":
            raise Refusal(
                500, "InternalError", f"failed calling webhook: read tcp 10.0.0.1:{40000 + next(numbers)}: reset"
            )
        before(asked)

    town.fake._misbehave = misbehave
    town.apply(kinds.SLURMCLUSTER, "demo", LOGIN)
    await asyncio.sleep(30)
    assert next(numbers) < 15
