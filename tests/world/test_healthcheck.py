"""Deep checks run as jobs that make way, are confirmed, drain their node, and bring it back when it passes again."""

import asyncio
import json
import os
from types import SimpleNamespace

import pytest

from soperator.kube import kinds
from soperator.policy.healthcheck import single_node
from soperator.policy.healthcheck.types import CheckPlan, RedrainNode, Submit
from soperator.reconcile.healthcheck.reconciler import HealthCheckControl
from soperator.slurmrest.client import SlurmRest
from tests.world.deep import BAD, CHECK, CLUSTER, WORKERS, begin, case, failing, jobs, of, run_on
from tests.world.fake_slurm import FakeSlurm
from tests.world.harness import Town, operating, until

#: `make test` takes a thousand, which is too long for `make check`.
MANY = int(os.environ.get("SOPERATOR_MANY", "120"))


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


async def test_every_node_runs_it_once_two_at_a_time(town):
    """Jobs go to a hidden partition of root's, as many as maxParallel, and each node has one; then nothing is due."""
    await begin(town)
    conf = town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]
    assert "PartitionName=soperator-check Nodes=ALL Hidden=YES RootOnly=YES PriorityTier=0 PreemptMode=CANCEL" in conf
    assert "PartitionName=main Nodes=ALL Default=YES PreemptMode=OFF" in conf
    await until(lambda: len(jobs(town, "PENDING")) == 2)
    for node in ("worker-0", "worker-1", "worker-2"):
        await run_on(town, node, "soperator exit=0\n")
        assert len(jobs(town, "PENDING", "RUNNING")) <= 2
    await until(lambda: of(town)["summary"] == "3/3")
    await asyncio.sleep(0.5)
    assert len(town.slurm.jobs) == 3
    assert of(town)["activeRuns"] == 0
    assert {each["name"] for each in town.slurm.jobs.values()} == {"soperator-check-disk"}


async def test_a_failure_is_confirmed_and_drains_the_node_with_its_evidence(town):
    """The first failure only makes it suspect; the second one is a reason, which the condition of the NodeSet and the status have too."""
    number = await failing(town)
    assert town.slurm.nodes["worker-1"]["reason"] == "soperator: check disk: the disk is slow"
    said = case(town, "worker-1")
    assert (said["state"], said["failures"], said["job"], said["log"]) == ("Failing", 2, number, "the disk is slow\n")
    await until(lambda: of(town)["failingNodes"] == 1)
    assert "1 failing: worker-1 (the disk is slow)" in of(town)["why"]
    healthy = lambda: {each["type"]: each for each in town.status(kinds.NODESET, "worker")["conditions"]}["Healthy"]  # noqa: E731
    await until(lambda: "worker-1 (Out: disk: the disk is slow)" in healthy()["message"], 30.0)
    assert [node for node, each in town.slurm.nodes.items() if "DRAIN" in each["state"]] == ["worker-1"]


async def test_a_drained_node_is_tested_while_it_stays_drained_and_returns_when_it_passes(town):
    """The job waits in a partition that goes before all others; the node is open only until the job has it. Two passes bring it back."""
    await failing(town)
    node = town.slurm.nodes["worker-1"]
    for age in (-60.0, 2.0):
        (number, *_) = await until(lambda: jobs(town, "PENDING"), 60.0)
        assert town.slurm.jobs[number]["partition"] == "soperator-retest"
        await until(lambda: "DRAIN" not in node["state"])
        town.slurm.start(number)
        await until(lambda: "DRAIN" in node["state"])
        assert node["reason"] == "soperator: check disk: the disk is slow"
        town.slurm.ends(number, age=age)
        await until(lambda number=number: number not in [each["job"] for each in of(town)["runs"]])
    await until(lambda: node["state"] == ["IDLE"])
    assert case(town, "worker-1") is None
    assert of(town)["endedFailures"][0]["message"] == "the disk is slow"
    await asyncio.sleep(2.0)
    assert node["state"] == ["IDLE"]
    assert jobs(town, "PENDING", "RUNNING") == []


async def test_a_test_that_ends_before_it_was_seen_leaves_no_bad_node_in_service(town):
    """The node was opened, the job ran at once and failed: the node is drained again, and then the result counts."""
    await failing(town)
    node = town.slurm.nodes["worker-1"]
    (number, *_) = await until(lambda: jobs(town, "PENDING"), 60.0)
    await until(lambda: "DRAIN" not in node["state"])
    town.slurm.start(number)
    town.slurm.ends(number, "FAILED", BAD, age=-60.0)
    await until(lambda: "DRAIN" in node["state"])
    assert node["reason"] == "soperator: check disk: the disk is slow"
    await until(lambda: case(town, "worker-1")["job"] == number)


async def test_a_run_that_made_way_is_neither_a_pass_nor_a_failure_and_is_repeated(town):
    """So is one whose job Slurm does not know any more."""
    await begin(town, maxParallel=3)
    for state in ("PREEMPTED", "PREEMPTED"):
        await run_on(town, "worker-0", "", state)
    gone = await until(
        lambda: [each for each in jobs(town, "PENDING") if town.slurm.jobs[each]["required_nodes"] == "worker-0"], 30.0
    )
    del town.slurm.jobs[gone[0]]
    number = await run_on(town, "worker-0", "soperator exit=0\n")
    assert number not in gone
    await until(lambda: of(town)["summary"] == "1/3")
    assert of(town)["unhealthyNodes"] == []


async def test_a_check_that_does_not_work_is_told_and_drains_nobody(town):
    """No word, an exit code of its own, and a time limit are no failures of the node; it runs once more, for that may have been chance."""
    await begin(town, maxParallel=3)
    await run_on(town, "worker-0", "")
    await run_on(town, "worker-1", "soperator exit=127\nno such file\n", "FAILED")
    await run_on(town, "worker-2", "", "TIMEOUT")
    await until(lambda: len(of(town).get("unhealthyNodes", ())) == 3)
    assert {each["state"] for each in of(town)["unhealthyNodes"]} == {"Broken"}
    assert case(town, "worker-1")["message"] == "exit code 127: no such file"
    assert case(town, "worker-2")["message"] == "it did not end within 10 min"
    await run_on(town, "worker-0", "soperator exit=0\n")
    await run_on(town, "worker-1", "soperator exit=127\nno such file\n", "FAILED")
    await run_on(town, "worker-2", "", "TIMEOUT")
    await until(lambda: [each["failures"] for each in of(town)["unhealthyNodes"]] == [2, 2])
    await asyncio.sleep(5.0)
    assert not [each for each in town.slurm.nodes.values() if "DRAIN" in each["state"]]
    assert len(town.slurm.jobs) == 6


async def test_a_new_operator_goes_on_with_what_the_former_one_began():
    """Runs that the status knows, and one that it does not, for it was not written: none is begun again or lost; one of a former object is none."""
    town = Town()
    async with operating(town):
        await begin(town, maxParallel=3)
        await until(lambda: len(jobs(town, "PENDING")) == 3)
        await until(lambda: len(of(town).get("runs", ())) == 3)
    kept = town.find(kinds.HEALTHCHECK, "disk")["status"]
    runs = [each for each in kept["runs"] if each["nodes"] != "worker-2"]
    top = max(each["job"] for each in runs)
    assert top < max(town.slurm.jobs)  # the numbers of jobs only grow
    town.fake.world.change(
        kinds.HEALTHCHECK, ("slurm", "disk"), {"status": {**kept, "runs": runs, "highestJob": top}}, sub="status"
    )
    for number in jobs(town, "PENDING"):
        town.slurm.start(number)
        node = town.slurm.jobs[number]["nodes"]
        town.slurm.ends(number, *(("FAILED", BAD) if node == "worker-2" else ()))
    former = {"job_id": 900, "comment": "another object", "job_state": ["FAILED"], "admin_comment": BAD}
    town.slurm.jobs[900] = {"name": "soperator-check-disk", "required_nodes": "worker-0", **former}
    async with operating(town):
        await until(lambda: of(town)["summary"] == "2/3", 30.0)
        await until(lambda: case(town, "worker-2"))
        await until(lambda: jobs(town, "PENDING"), 30.0)
        assert len(town.slurm.jobs) == 5
        assert [town.slurm.jobs[each]["required_nodes"] for each in jobs(town, "PENDING")] == ["worker-2"]


async def test_a_request_runs_it_once_more_and_a_suspended_one_not(town):
    """A new word is one request."""
    await begin(town, maxParallel=3)
    for each in ("worker-0", "worker-1", "worker-2"):
        await run_on(town, each, "soperator exit=0\n")
    await until(lambda: of(town)["summary"] == "3/3")
    await asyncio.sleep(0.5)
    assert len(town.slurm.jobs) == 3
    await asyncio.sleep(1.1)
    again = {"when": {"runRequest": "again"}, "maxParallel": 3}
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | again | {"suspend": True})
    await asyncio.sleep(2.0)
    assert len(town.slurm.jobs) == 3
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | again | {"suspend": False})
    await until(lambda: len(town.slurm.jobs) == 6, 30.0)


async def test_a_former_request_runs_no_check(town):
    """The value of a request that was carried out before the last one is reported instead."""
    await begin(town, when={"runRequest": "a"})
    await until(lambda: of(town).get("lastRequest") == "a")
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"when": {"runRequest": "b"}})
    await until(lambda: of(town).get("lastRequest") == "b")
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"when": {"runRequest": "a"}})

    def message():
        return next(each["message"] for each in of(town)["conditions"] if each["type"] == "Ready")

    await until(lambda: message().startswith("spec.when.runRequest a was carried out before"))
    assert (of(town)["lastRequest"], of(town)["completedRequests"]) == ("b", ["a", "b"])


async def test_what_is_wrong_with_a_check_names_the_field(town):
    """A NodeSet that is none, a schedule out of range, a time limit that is none, a script without an interpreter."""
    bad = {"nodeSets": ["gpu"], "when": {"schedule": "61 * * * *"}, "timeLimit": "5s", "script": "true"}
    await begin(town, **bad)
    await until(lambda: of(town).get("why"))
    for words in (
        "spec.nodeSets[0]: gpu",
        "spec.when.schedule: 61 * * * *: bad minute",
        "spec.timeLimit: 5s: give at least 60s",
        "#!/bin/sh",
    ):
        assert words in town.says(kinds.HEALTHCHECK, "disk")
    assert town.slurm.jobs == {}


async def test_a_round_over_many_nodes_keeps_to_its_share_and_asks_little():
    """A tenth at once: one job each, and no more than four requests for each node, whatever it takes."""
    async with operating(Town()) as town:
        town.watch._period = 2.0
        town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": "10%", "suspend": True})
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": MANY}})
        before = len(town.slurm.asked)
        town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": "10%", "suspend": False})
        end = asyncio.get_running_loop().time() + 400.0
        while of(town).get("summary") != f"{MANY}/{MANY}":
            assert asyncio.get_running_loop().time() < end, of(town)
            assert len(jobs(town, "PENDING", "RUNNING")) <= MANY // 10
            for number in jobs(town, "RUNNING"):
                town.slurm.ends(number)
            for number in jobs(town, "PENDING"):
                town.slurm.start(number)
            await asyncio.sleep(3.0)
        assert len(town.slurm.jobs) == MANY
        assert len(town.slurm.asked) - before <= 4 * MANY
        assert len(of(town)["lastRuns"]) < 50


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"check": "net"}, "no shipped check has this name: use one of allreduce, burn, cpu, dcgm"),
        (
            {"check": "cpu", "thresholds": {"gflops": 5}},
            "the check has no threshold of this name: remove it; its thresholds: none",
        ),
        ({"check": "cpu", "script": "#!/bin/sh"}, "set check to the name of a shipped check, or set script"),
        ({}, "set check to the name of a shipped check, or set script"),
    ],
)
async def test_a_check_that_cannot_be_meant_is_refused(town, spec, says):
    """The status says what is wrong and what there is."""
    town.apply(kinds.HEALTHCHECK, "disk", {"clusterRef": {"name": "demo"}, **spec})
    await town.up(CLUSTER, WORKERS)
    await until(lambda: says in town.says(kinds.HEALTHCHECK, "disk"))


async def test_a_node_that_fails_moves_to_another_machine_and_returns_when_it_passes_there(town):
    """Confirmed, drained, the Node cordoned with the evidence, the pod made anew elsewhere, tested there at once and again, and in service."""
    town.keep_time()
    town.machine("rack-7")
    town.machine("rack-8")
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": 3, "onFailure": "Replace", "retryInterval": "20s"})
    await town.up(CLUSTER | {"health": {"replace": {"after": "0s"}}}, WORKERS)
    town.trial_ends() if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)) else None
    town.place("demo-worker-1", "rack-7")
    first = town.find(kinds.POD, "demo-worker-1")["metadata"]["uid"]
    for each in ("worker-0", "worker-1", "worker-2"):
        await run_on(town, each, BAD if each == "worker-1" else "soperator exit=0\n", age=0.0)
    number = await run_on(town, "worker-1", BAD, age=0.0)
    node = town.slurm.nodes["worker-1"]
    await until(lambda: "DRAIN" in node["state"])
    machine = lambda: town.fake.world.find(kinds.NODE, "", "rack-7")  # noqa: E731
    await until(lambda: machine()["spec"].get("unschedulable"))
    evidence = json.loads(machine()["metadata"]["annotations"]["slurm.soperator.io/unhealthy"])
    assert (evidence["check"], evidence["says"], evidence["node"]) == ("disk", "the disk is slow", "worker-1")
    await until(
        lambda: (town.find(kinds.POD, "demo-worker-1") or {"metadata": {"uid": first}})["metadata"]["uid"] != first
    )
    assert (case(town, "worker-1")["state"], case(town, "worker-1")["job"]) == ("Failing", number)
    assert jobs(town, "PENDING") == []  # nobody tests a worker that does not run
    town.place("demo-worker-1", "rack-8")
    town.pods_run()
    for _ in range(2):
        (number, *_) = await until(lambda: jobs(town, "PENDING"), 90.0)
        assert town.slurm.jobs[number]["partition"] == "soperator-retest"
        await until(lambda: "DRAIN" not in node["state"])
        town.slurm.start(number)
        await until(lambda: "DRAIN" in node["state"])
        town.slurm.ends(number)
        await until(lambda number=number: number not in [each["job"] for each in of(town)["runs"]])
    await until(lambda: node["state"] == ["IDLE"])
    assert case(town, "worker-1") is None
    assert [(each["node"], each["message"]) for each in of(town)["endedFailures"]] == [("worker-1", "the disk is slow")]
    assert town.find(kinds.POD, "demo-worker-1")["spec"]["nodeName"] == "rack-8"
    assert machine()["spec"]["unschedulable"] is True
    assert "slurm.soperator.io/unhealthy" in machine()["metadata"]["annotations"]
    assert not town.fake.world.find(kinds.NODE, "", "rack-8")["spec"].get("unschedulable")


async def test_a_check_that_is_deleted_ends_its_jobs_and_takes_its_drains_back(town):
    """A node that somebody else drained stays so, and the object goes when all is done."""
    town.keep_time()
    await failing(town, age=0.0, retryInterval="10m")
    pod = lambda: town.find(kinds.POD, "demo-worker-1")["metadata"]["annotations"]  # noqa: E731
    await until(lambda: "soperator: check disk:" in pod().get("slurm.soperator.io/drained", ""), 60.0)
    town.slurm.set("worker-2", "IDLE", "DRAIN", reason="by hand")
    await asyncio.sleep(1.1)
    again = {"maxParallel": 3, "retryInterval": "20s", "when": {"runRequest": "again"}}
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | again)
    await until(lambda: len(jobs(town, "PENDING")) == 2, 30.0)  # worker-0, and the test of worker-1
    number = next(each for each in jobs(town, "PENDING") if town.slurm.jobs[each]["required_nodes"] == "worker-0")
    town.slurm.start(number)
    await town.fake.api().delete(kinds.HEALTHCHECK, "slurm", "disk")
    await until(lambda: town.find(kinds.HEALTHCHECK, "disk") is None, 60.0)
    assert jobs(town, "PENDING", "RUNNING") == []
    assert "slurm.soperator.io/drained" not in pod()
    assert [name for name, each in town.slurm.nodes.items() if "DRAIN" in each["state"]] == ["worker-2"]
    await asyncio.sleep(5.0)
    assert town.slurm.nodes["worker-1"]["state"] == ["IDLE"]
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    town.trial_ends()
    await until(lambda: "soperator-check" not in town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"])


async def test_a_check_can_be_deleted_though_slurm_is_silent(town):
    """After two minutes, in which Slurm might have come back."""
    await begin(town)
    await until(lambda: jobs(town, "PENDING"))
    town.slurm.down = True
    began = asyncio.get_running_loop().time()
    await town.fake.api().delete(kinds.HEALTHCHECK, "slurm", "disk")
    await until(lambda: of(town)["why"].startswith("it is being deleted; "))
    ready = next(each for each in of(town)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "Deleting", of(town)["why"])
    await until(lambda: town.find(kinds.HEALTHCHECK, "disk") is None, 200.0)
    assert asyncio.get_running_loop().time() - began > 60.0


async def test_a_node_that_an_administrator_takes_while_its_test_waits_is_not_opened(town):
    """He gives the drain his own reason after the pass has looked at the node, and before it opens it."""
    await failing(town)
    node, answer = town.slurm.nodes["worker-1"], town.slurm._about_job

    def about_job(request, number, body):
        if request.method == "GET" and "PENDING" in town.slurm.jobs[int(number)]["job_state"]:
            town.slurm.administrator("worker-1", "DRAIN", "bad disk")
        return answer(request, number, body)

    town.slurm._about_job = about_job
    await until(lambda: node["reason"] == "bad disk", 60.0)
    await asyncio.sleep(5)
    assert (node["state"], node["reason"]) == (["IDLE", "DRAIN"], "bad disk")


async def test_a_node_that_an_administrator_sets_down_is_not_drained_after_a_test():
    """He does so after the pass has looked at it: the end of that drain would lift DOWN too."""
    slurm = FakeSlurm()
    slurm.set("worker-1", "IDLE")
    slurm.administrator("worker-1", "DOWN", "bad disk")
    ground = SimpleNamespace(client=SlurmRest("http://rest", b"key", slurm))
    said = await HealthCheckControl(None)._act(ground, [RedrainNode("worker-1", "soperator: check disk: it is slow")])
    assert (said, slurm.nodes["worker-1"]["state"], slurm.nodes["worker-1"]["reason"]) == ("", ["DOWN"], "bad disk")


async def test_a_decision_that_breaks_a_rule_of_deep_checks_does_nothing_and_is_reported(town, monkeypatch):
    """Rules with a defect submit two jobs to one node: none is submitted, Ready names the node, and correct rules continue."""
    right = single_node.decide
    wrong = lambda *_: CheckPlan((Submit("worker-0"), Submit("worker-0")))  # noqa: E731
    monkeypatch.setattr(single_node, "decide", wrong)
    await begin(town)
    ready = lambda: {each["type"]: each for each in of(town).get("conditions", ())}.get("Ready", {})  # noqa: E731
    await until(lambda: ready().get("reason") == "InvariantBroken", 30.0)
    assert "node worker-0 would run two jobs of the check; report this as a defect" in ready()["message"]
    await asyncio.sleep(6.0)
    assert town.slurm.jobs == {}
    monkeypatch.setattr(single_node, "decide", right)
    await until(lambda: len(jobs(town, "PENDING")) == 2, 30.0)
