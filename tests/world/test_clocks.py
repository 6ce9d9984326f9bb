"""Clocks that do not agree: how long a job may run is reckoned by two of them, slurmctld's and the operator's."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.world.harness import Town, operating, until
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER

BOUNDED = {"timeout": "12h", "onTimeout": "Cancel", "warningPeriod": "5m", "warningSignal": "USR1"}


@pytest.fixture
async def town():
    """An operator that runs over empty fakes, and a job on a node that drains."""
    async with operating(Town()) as made:
        await made.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        made.slurm.run(7, "worker-0")
        made.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": BOUNDED})
        await until(lambda: "DRAIN" in made.slurm.nodes["worker-0"]["state"])
        await asyncio.sleep(2)
        yield made


async def test_an_operator_whose_clock_is_ahead_warns_and_ends_no_job(town):
    """It was begun on a machine whose clock is wrong by a day; it says so, and goes on when the clock is right."""
    town.later = 86400.0
    await asyncio.sleep(400)
    assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]
    assert town.slurm.signalled == []
    await town.told(kinds.NODESET, "worker", "clock", longest=30)
    town.later = 0.0
    await asyncio.sleep(30)
    assert "clock" not in town.says(kinds.NODESET, "worker")


async def test_a_job_ends_in_time_where_the_clocks_agree(town):
    """So long after its node began to drain as the spec says, and warned."""
    drain = BOUNDED | {"timeout": "30s", "warningPeriod": "10s"}
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0, "drain": drain})
    await asyncio.sleep(15)
    assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]
    await until(lambda: town.slurm.jobs[7]["job_state"] == ["CANCELLED"], longest=30)
    assert town.slurm.signalled == [7]
    await until(lambda: workers(town) == [])


@pytest.mark.parametrize("ahead", [0.0, 30.0, 86400.0, -86400.0])
async def test_a_suspended_job_keeps_its_pod_whatever_the_clocks_say(ahead):
    """A list of jobs from before the drain lacks it. How old the drain is, is told by slurmctld's clock alone, or that list would do."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        town.later = ahead
        await asyncio.sleep(5)
        assert await town.operator.slurm.client(("slurm", "demo")).jobs() == []
        town.slurm.run(7, "worker-0")
        town.slurm.suspend(7)
        town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
        await until(lambda: "DRAIN" in town.slurm.nodes["worker-0"]["state"])
        await asyncio.sleep(5)
        assert workers(town) == ["demo-worker-0"]
        town.slurm.ends(7)
        await until(lambda: workers(town) == [], longest=60)
