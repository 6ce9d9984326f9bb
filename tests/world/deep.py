"""What the tests of deep checks share: a cluster with a HealthCheck named disk, and Slurm playing its jobs."""

import asyncio

from soperator.kube import kinds
from tests.world.harness import until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 3}}
CHECK = {"clusterRef": {"name": "demo"}, "script": "#!/bin/sh\ntrue\n", "maxParallel": 2, "retryInterval": "20s"}
BAD = "soperator exit=1\nthe disk is slow\n"


def of(town, name="disk"):
    return town.status(kinds.HEALTHCHECK, name)


def jobs(town, *states):
    """The numbers of jobs in these states."""
    return [number for number, each in town.slurm.jobs.items() if set(states) & set(each["job_state"])]


def case(town, node):
    return next((each for each in of(town).get("unhealthyNodes", ()) if each["node"] == node), None)


async def begin(town, **more):
    """A cluster that is up, and a check that runs on it."""
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | more)
    await town.up(CLUSTER, WORKERS)
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None


async def run_on(town, node, said, state="COMPLETED", age=-60.0):
    """Let the next job that waits for this node run and end so."""
    waits = lambda: [each for each in jobs(town, "PENDING") if town.slurm.jobs[each]["required_nodes"] == node]  # noqa: E731
    (number, *_) = await until(waits, 30.0)
    town.slurm.start(number)
    await asyncio.sleep(0.1)
    town.slurm.ends(number, state, said, age)
    return number


async def failing(town, node="worker-1", age=-60.0, **more):
    """Let all nodes pass but this one, which fails and is confirmed; return when it is drained."""
    await begin(town, maxParallel=3, **more)
    for each in ("worker-0", "worker-1", "worker-2"):
        await run_on(town, each, BAD if each == node else "soperator exit=0\n", age=age)
    await until(lambda: case(town, node))
    assert case(town, node)["state"] == "Suspect"
    assert "DRAIN" not in town.slurm.nodes[node]["state"]
    number = await run_on(town, node, BAD, age=age)
    await until(lambda: "DRAIN" in town.slurm.nodes[node]["state"])
    return number
