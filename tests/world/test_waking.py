"""Which changes wake which passes: nobody waits for a timer where an event says that it is time."""

import pytest

from soperator.kube import kinds
from tests.world.harness import Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}, "populate": "Never"}, "controller": {"state": {"name": "demo-state"}}}  # fmt: skip


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


async def test_the_controllers_statefulset_wakes_its_nodesets(town):
    """Workers of a jail that is filled already are made as soon as the controller is, so the first status tells of them."""
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2})
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    await town.settle(quiet=0.15)
    assert town.names(kinds.POD) == ["demo-worker-0", "demo-worker-1"]
    await town.settle(quiet=0.6)
    assert town.status(kinds.NODESET, "worker")["replicas"] == 2


async def test_the_populate_pod_that_succeeded_is_enough(town):
    """Login and workers do not wait until the Job, too, has taken notice of its pod's end; another Job's pod says nothing."""
    town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "jail": {"claim": {"name": "demo-jail"}}})
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2})
    await town.settle(quiet=0.6)
    job = town.find(kinds.JOB, "demo-populate")
    town.populate_ends("demo-populate-old", "another")
    await town.settle(quiet=0.6)
    assert town.names(kinds.STATEFULSET) == ["demo-controller"]
    town.populate_ends("demo-populate-new", job["metadata"]["uid"])
    await town.settle(quiet=0.6)
    assert town.names(kinds.STATEFULSET) == ["demo-controller", "demo-login"]
    assert "demo-worker-0" in town.names(kinds.POD)
