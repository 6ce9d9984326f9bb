"""Nodes whose checks fail are drained with their evidence, within the budget, and come back by themselves."""

import asyncio
import json
import re

import pytest

from soperator.checks.check_state import CheckState
from soperator.checks.report import Report, ResolvedCheck, write
from soperator.kube import kinds
from tests.world.harness import Town, operating, until

CLUSTER = {
    "jail": {"claim": {"name": "demo-jail"}},
    "controller": {"state": {"name": "demo-state"}},
    "health": {"mode": "Drain", "interval": "30s", "maxUnhealthy": 1, "disabledChecks": ["zombies"]},
}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 3}}
FULL = "/tmp is 97 % full"


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


def reports(town, name, *checks, last=None):
    """What the runner of a node tells Slurm."""
    node = town.slurm.nodes[name]
    node["extra"] = write(Report(town.wall(), checks, last=last))


def failing(since=10.0):
    return CheckState("disk-full", "failing", since, FULL)


def healthy(town):
    return next(each for each in town.status(kinds.NODESET, "worker")["conditions"] if each["type"] == "Healthy")


async def said(town, words, longest=20.0):
    """Wait until the condition says these words, or nothing; a status is written every few seconds."""
    until = asyncio.get_running_loop().time() + longest
    while (words not in healthy(town)["message"]) if words else healthy(town)["message"]:
        assert asyncio.get_running_loop().time() < until, healthy(town)
        await asyncio.sleep(0.05)


async def test_a_node_whose_check_fails_is_drained_and_comes_back_when_it_passes(town):
    """Slurm's reason, the condition and the note say the same; the other nodes go on."""
    await town.up(CLUSTER, WORKERS)
    for name in ("worker-0", "worker-1", "worker-2"):
        reports(town, name)
    await town.settle(quiet=0.3)
    assert healthy(town)["status"] == "True"
    reports(town, "worker-1", failing())
    await town.settle(quiet=0.3)
    node = town.slurm.nodes["worker-1"]
    assert (node["state"], node["reason"]) == (["IDLE", "DRAIN"], f"soperator: check disk-full: {FULL}")
    await said(town, f"checks have drained 1 of 3 nodes: worker-1 (Out: disk-full: {FULL})")
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    reports(town, "worker-1", last=ResolvedCheck("disk-full", 10.0, node["reason_changed_at"]["number"] + 60, FULL))
    await said(town, "")
    assert node["state"] == ["IDLE"]
    assert healthy(town)["status"] == "True"


async def test_a_check_that_fails_everywhere_takes_out_no_more_than_the_budget(town):
    """The others stay in service, and the NodeSet says so."""
    await town.up(CLUSTER, WORKERS)
    for number in range(3):
        reports(town, f"worker-{number}", failing(since=10.0 - number))
    await town.settle(quiet=0.5)
    drained = [name for name, each in town.slurm.nodes.items() if "DRAIN" in each["state"]]
    assert drained == ["worker-2"]
    await said(town, "2 more fail but stay in service, because health.maxUnhealthy is 1")


async def test_the_jobs_of_a_node_that_fails_a_check_say_so_in_their_comments(town):
    """What stands there stays; the queue is asked for once, whatever else becomes of the failure."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.run(7, "worker-1")
    town.slurm.run(8, "worker-2")
    town.slurm.jobs[7]["admin_comment"] = "see ticket 7"
    reports(town, "worker-1", failing())
    await until(lambda: "disk-full" in town.slurm.jobs[7]["admin_comment"])
    comment = town.slurm.jobs[7]["admin_comment"]
    assert re.fullmatch(rf"see ticket 7; worker-1 failed check disk-full at \S+Z: {FULL}", comment)
    assert "admin_comment" not in town.slurm.jobs[8]
    asked = town.slurm.asked.count("GET jobs/")
    reports(town, "worker-1", CheckState("disk-full", "failing", 11.0, FULL))
    await town.settle(quiet=0.3)
    assert (town.slurm.asked.count("GET jobs/"), town.slurm.jobs[7]["admin_comment"]) == (asked, comment)


async def test_a_job_that_began_just_before_its_node_was_drained_has_the_comment_too(town):
    """The list of jobs is one for all passes and may be some seconds old: it has to be newer than the drain."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.run(8, "worker-2")
    client = town.operator.slurm.client(("slurm", "demo"))
    assert [each.number for each in await client.jobs()] == [8]
    town.slurm.run(7, "worker-1")
    reports(town, "worker-1", failing())
    await until(lambda: "disk-full" in town.slurm.jobs[7].get("admin_comment", ""))


async def test_workers_get_their_plan_and_slurm_the_program_that_runs_it(town):
    """In the interval of the spec, without what was left out; another list of checks makes no other pods."""
    await town.up(CLUSTER, WORKERS)
    conf = town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]
    assert re.search(
        r"HealthCheckProgram=/usr/lib/soperator/checks\nHealthCheckInterval=30\nHealthCheckNodeState=ANY", conf
    )
    plan = json.loads(town.find(kinds.CONFIGMAP, "demo-worker-checks")["data"]["plan.json"])
    assert "disk-full" in plan["checks"]
    assert "zombies" not in plan["checks"]
    before = {name: town.find(kinds.POD, name)["metadata"]["uid"] for name in town.names(kinds.POD) if "worker" in name}
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"health": CLUSTER["health"] | {"disabledChecks": ["disk-full"]}})
    await town.settle(quiet=0.4)
    plan = json.loads(town.find(kinds.CONFIGMAP, "demo-worker-checks")["data"]["plan.json"])
    assert "disk-full" not in plan["checks"]
    after = {name: town.find(kinds.POD, name)["metadata"]["uid"] for name in town.names(kinds.POD) if "worker" in name}
    assert before == after


async def test_without_checks_nothing_of_them_is_there(town):
    """They are off by default, and a report that lies around drains nobody."""
    await town.up({key: each for key, each in CLUSTER.items() if key != "health"}, WORKERS)
    reports(town, "worker-1", failing())
    await town.settle(quiet=0.4)
    assert "HealthCheck" not in town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]
    assert town.find(kinds.CONFIGMAP, "demo-worker-checks") is None
    assert town.slurm.nodes["worker-1"]["state"] == ["IDLE"]
    assert "Healthy" not in {each["type"] for each in town.status(kinds.NODESET, "worker")["conditions"]}


async def test_a_check_that_nobody_has_written_cannot_be_left_out(town):
    """A misspelt name is refused with those that there are."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"health": {"disabledChecks": ["disk-fill"]}})
    await town.settle()
    assert "disk-fill" in town.says(kinds.SLURMCLUSTER, "demo")
    assert "disk-full" in town.says(kinds.SLURMCLUSTER, "demo")


async def test_a_bad_machine_is_cordoned_with_its_evidence_and_its_worker_comes_anew(town):
    """Once nothing runs on it; the drain stays until the new pod's checks have been content."""
    replaced = {**CLUSTER, "health": {**CLUSTER["health"], "replace": {"after": "0s", "condition": "example.com/Bad"}}}
    town.machine("rack-7")
    await town.up(replaced, WORKERS)
    town.place("demo-worker-1", "rack-7")
    before = town.find(kinds.POD, "demo-worker-1")["metadata"]["uid"]
    reports(town, "worker-1", CheckState("gpu-lost", "failing", town.wall(), "GPU 3 is lost", "replace"))
    await town.settle(quiet=0.5)
    node = town.fake.world.find(kinds.NODE, "", "rack-7")
    assert node["spec"]["unschedulable"] is True
    evidence = json.loads(node["metadata"]["annotations"]["slurm.soperator.io/unhealthy"])
    assert (evidence["check"], evidence["says"], evidence["node"]) == ("gpu-lost", "GPU 3 is lost", "worker-1")
    bad = next(each for each in node["status"]["conditions"] if each["type"] == "example.com/Bad")
    assert (bad["status"], bad["message"]) == ("True", "gpu-lost: GPU 3 is lost")
    assert next(each for each in node["status"]["conditions"] if each["type"] == "Ready")["status"] == "True"
    again = town.find(kinds.POD, "demo-worker-1")
    assert again is None or again["metadata"]["uid"] != before
    assert town.slurm.nodes["worker-1"]["reason"] == "soperator: check gpu-lost: GPU 3 is lost"


async def test_a_worker_with_a_suspended_job_stays_on_its_bad_machine(town):
    """Slurm calls its node drained; the job is cancelled or resumed first."""
    replaced = {**CLUSTER, "health": {**CLUSTER["health"], "replace": {"after": "0s", "condition": "example.com/Bad"}}}
    town.machine("rack-7")
    await town.up(replaced, WORKERS)
    town.place("demo-worker-1", "rack-7")
    town.slurm.run(7, "worker-1")
    town.slurm.jobs[7]["job_state"] = ["SUSPENDED"]
    town.slurm.nodes["worker-1"]["state"] = ["IDLE"]
    reports(town, "worker-1", CheckState("gpu-lost", "failing", town.wall(), "GPU 3 is lost", "replace"))
    await asyncio.sleep(30)
    assert not town.fake.world.find(kinds.NODE, "", "rack-7")["spec"].get("unschedulable")
    del town.slurm.jobs[7]
    await until(lambda: town.fake.world.find(kinds.NODE, "", "rack-7")["spec"].get("unschedulable"), longest=30)
