"""Checks that we ship, as jobs: their readings are judged against limits and peers, alone, in pairs and in groups."""

import asyncio
import json

import pytest

from soperator.kube import kinds
from soperator.slurm.hostlist import expand
from tests.world.deep import CLUSTER, case, jobs, of, run_on
from tests.world.harness import Town, operating, until


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def measured(node, gflops):
    """What the wrapper writes of a node's job."""
    reading = {"of": node, "gflops": gflops, "slowest": 99.0, "cores": 8, "wrong": 0, "which": -1}
    return f"soperator exit=0\n{json.dumps({'soperator': 1, 'readings': [reading]})}\n"


async def test_a_shipped_check_compares_a_node_with_its_peers(town):
    """The job runs the program; what nodes read stands in the status, and the one that is slower than they are fails, and runs it again."""
    town.apply(
        kinds.HEALTHCHECK,
        "disk",
        {"clusterRef": {"name": "demo"}, "check": "cpu", "maxParallel": 1, "failureThreshold": 1},
    )
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 5}})
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None
    for number in range(5):
        await run_on(town, f"worker-{number}", measured(f"worker-{number}", 40.0 if number == 4 else 100.0 + number))
    said = await until(lambda: case(town, "worker-4"))
    assert (said["state"], said["message"]) == ("Failing", "worker-4 computes 40.0 Gflop/s, its peers 101.0")
    assert all(case(town, f"worker-{number}") is None for number in range(4))
    assert [each["nodes"] for each in of(town)["readings"]] == [f"worker-{number}" for number in range(5)]
    assert of(town)["readings"][0]["values"]["gflops"] == "100.0"
    assert "exec /opt/soperator/libexec/deep cpu seconds=5" in next(iter(town.slurm.jobs.values()))["script"]


async def test_a_shipped_check_that_says_nothing_is_broken(town):
    """Exit code 0 without readings is no pass, and exit code 1 no failure of a node."""
    town.apply(kinds.HEALTHCHECK, "disk", {"clusterRef": {"name": "demo"}, "check": "cpu", "maxParallel": 1})
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None
    await run_on(town, "worker-0", "soperator exit=0\nwell\n")
    await until(lambda: (case(town, "worker-0") or {}).get("state") == "Broken")
    await run_on(town, "worker-0", "soperator exit=0\n")
    await run_on(town, "worker-1", "soperator exit=1\ndeep: cpu: no memory\n")
    await until(lambda: (case(town, "worker-1") or {}).get("state") == "Broken")


def play(town, read):
    """Let every job that can run do so and end with what it reads; return which nodes each had."""
    ran = []
    for number in jobs(town, "PENDING"):
        job = town.slurm.jobs[number]
        names = expand(job["required_nodes"])
        if not any({"ALLOCATED", "DRAIN"} & set(town.slurm.nodes[name]["state"]) for name in names):
            town.slurm.start(number)
    for number in jobs(town, "RUNNING"):
        names = expand(town.slurm.jobs[number]["nodes"])
        retests = town.slurm.jobs[number]["partition"] == "soperator-retest"
        if not retests or any("DRAIN" in town.slurm.nodes[name]["state"] for name in names):
            said = json.dumps({"soperator": 1, "readings": [{"of": " ".join(names), **read(names)}]})
            town.slurm.ends(number, said=f"soperator exit=0\n{said}\n")
            ran.append(names)
    return ran


async def playing(town, read, done, longest=400.0):
    """Play until it is so; return which nodes each job had."""
    end, ran = asyncio.get_running_loop().time() + longest, []
    while not done():
        assert asyncio.get_running_loop().time() < end, of(town)
        ran += play(town, read)
        await asyncio.sleep(1.0)
    return ran


async def test_pairs_find_the_bad_node_drain_it_and_test_it_with_a_partner(town):
    """A slow card among eight nodes: suspect, confirmed in a round of its own, drained, tested while it is drained, and in service again."""
    town.keep_time()
    slow = {"worker-5"}
    read = lambda names: {"gbps": 1.0 if slow & set(names) else 10.0, "latency": 50.0}  # noqa: E731
    town.apply(
        kinds.HEALTHCHECK,
        "disk",
        {"clusterRef": {"name": "demo"}, "check": "network", "maxParallel": 8, "retryInterval": "20s"},
    )
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 8}})
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None
    node = town.slurm.nodes["worker-5"]
    ran = await playing(town, read, lambda: "DRAIN" in node["state"])
    assert {len(names) for names in ran} == {2}
    assert node["reason"].startswith("soperator: check disk: gbps 1 with worker-")
    assert [name for name, each in town.slurm.nodes.items() if "DRAIN" in each["state"]] == ["worker-5"]
    assert case(town, "worker-5")["log"].count("gbps=1") >= 2
    job = next(iter(town.slurm.jobs.values()))
    assert "exec srun --ntasks-per-node=1 --cpu-bind=none --mem=0 /opt/soperator/libexec/deep network" in job["script"]
    before = len(town.slurm.jobs)
    await playing(town, read, lambda: len(town.slurm.jobs) > before + 2)
    assert "soperator-retest" in {each["partition"] for each in town.slurm.jobs.values()}
    await until(lambda: "DRAIN" in node["state"])
    slow.clear()
    await playing(town, read, lambda: node["state"] == ["IDLE"] and case(town, "worker-5") is None)
    assert [each["node"] for each in of(town)["endedFailures"]] == ["worker-5"]
    assert of(town)["summary"] == "8/8"


async def test_a_group_is_one_job_and_a_slow_way_in_it_is_told(town):
    """Pairs tell that no node is bad; the status has the way, and Passing says so."""
    town.keep_time()
    read = lambda names: {  # noqa: E731
        "busbw": 0.1 if {"worker-2", "worker-3"} <= set(names) else 2.0,
        "wrong": 0,
        "nodes": len(names),
    }
    spec = {
        "clusterRef": {"name": "demo"},
        "check": "allreduce",
        "maxParallel": "100%",
        "thresholds": {"tcp_busbw": "1.0"},
    }
    town.apply(kinds.HEALTHCHECK, "disk", spec)
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 6}})
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None
    ran = await playing(town, read, lambda: of(town).get("findings"))
    assert len(ran[0]) == 6
    assert {len(names) for names in ran[1:]} == {2}
    says = "the path between worker-2 and worker-3 is slow, but both nodes are healthy"
    assert [each["message"] for each in of(town)["findings"]] == [says]
    passing = lambda: {each["type"]: each for each in of(town)["conditions"]}["Passing"]  # noqa: E731
    await until(lambda: passing()["message"] == says)
    assert of(town)["summary"] == "6/6"
    assert not [each for each in town.slurm.nodes.values() if "DRAIN" in each["state"]]
