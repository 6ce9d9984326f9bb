"""Caches that trail the API server: what was not seen is no reason for a deletion."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


async def silence(town, plural, seconds):
    """Let the watches of a kind say nothing for a while: a connection whose other end is gone, or a server that trails."""
    heard = town.fake._events
    clock = asyncio.get_running_loop().time
    until = clock() + seconds

    async def events(asked, since, cuts):
        async for line in heard(asked, since, cuts):
            if asked.where.plural == plural:
                await asyncio.sleep(max(0.0, until - clock()))
            yield line

    town.fake._events = events
    town.fake.world.cut()
    await asyncio.sleep(1.5)


async def test_a_worker_that_began_unseen_is_drained_before_it_goes(town):
    """To the cache its pod is Pending, and Slurm says in the same pass that a job runs there."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2})
    await town.settle(quiet=0.3)
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"status": {"phase": "Pending"}}, sub="status")
    await town.settle(quiet=0.3)
    await silence(town, "pods", 30)
    town.pods_run()
    town.slurm.run(7, "worker-1")
    town.slurm.set("worker-0", "ALLOCATED")
    await asyncio.sleep(5)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await asyncio.sleep(5)
    assert "demo-worker-1" in workers(town)


async def test_a_pod_that_changed_unseen_is_not_deleted_before_it_is_seen(town):
    """The deletion names the version that was decided upon; the API server refuses it for a newer one, and the next look decides anew."""
    await town.up(CLUSTER, WORKERS)
    await silence(town, "pods", 12)
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"metadata": {"labels": {"new": "true"}}})
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason="soperator: scale-in")
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await asyncio.sleep(8)
    assert "demo-worker-1" in workers(town)
    assert "precondition" not in town.says(kinds.NODESET, "worker"), "that it is looked at again is no failure"
    await asyncio.sleep(10)
    assert workers(town) == ["demo-worker-0"]
