"""Nodes that sleep: what the operator asks for, and how often."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from soperator.kube import kinds
from soperator.policy.workers.power_states import DENIED
from soperator.render.parts import labels
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating, until
from tests.world.scontrol import Scontrol

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
SIZE = {"limits": {"cpu": "1", "memory": "1Gi"}}
POWER = {"maxNodes": 4, "suspendTime": "1h", "resumeTimeout": "10m"}


@asynccontextmanager
async def sleeping(power, **more):
    """A cluster whose one NodeSet sleeps, with further fields, and scontrol."""
    town = Town()
    scontrol = Scontrol(town.slurm)
    async with operating(town, execute=scontrol) as town:
        town.watch._period = 0.5
        await town.up(
            CLUSTER, {"owl": {"clusterRef": {"name": "demo"}, "powerSaving": power, "resources": SIZE, **more}}
        )
        await until(lambda: town.status(kinds.NODESET, "owl").get("asleep") == power["maxNodes"])
        yield town, scontrol


def owls(town):
    """The pods of the NodeSet."""
    return [name for name in town.names(kinds.POD) if name.startswith("demo-owl-")]


def parts(town):
    """The conditions of the NodeSet by type."""
    return {each["type"]: each for each in town.status(kinds.NODESET, "owl")["conditions"]}


def requests(town, scontrol):
    """How many there were to Kubernetes, to slurmctld's container and to slurmrestd."""
    return len(town.fake.requests), len(scontrol.said), len(town.slurm.asked)


async def test_a_thousand_nodes_that_sleep_cost_no_pod_and_as_many_requests_as_ten():
    """They are made in one command, and nothing is asked for while they sleep."""
    asked = {}
    for many in (10, 1000):
        async with sleeping({"maxNodes": many}) as (town, scontrol):
            await town.settle(quiet=1.2)
            asked[many] = requests(town, scontrol)
            await town.settle(quiet=1.2)
            assert requests(town, scontrol) == asked[many]
            assert not owls(town)
            assert parts(town)["Available"]["status"] == "True"
    assert asked[1000] == asked[10]


async def test_slurm_conf_lets_nodes_sleep_before_there_are_any():
    """A slurmctld that knows nothing of power saving would take sleeping nodes for nodes that are up."""
    async with sleeping(POWER) as (town, scontrol):
        conf = town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]
        assert "ResumeProgram=/usr/bin/true\n" in conf
        assert "ResumeTimeout=660\n" in conf
        assert scontrol.said[0] == "create NodeName=owl-[0-3] State=CLOUD CPUs=1 RealMemory=1024 Feature=owl"


async def test_exactly_those_nodes_get_a_pod_that_a_job_needs_and_lose_it_when_they_sleep():
    """And the words to Slurm are as many as there are kinds of them, not nodes."""
    async with sleeping(POWER) as (town, scontrol):
        said = len(scontrol.said)
        scontrol.wake("owl-1", "owl-3")
        await until(lambda: owls(town) == ["demo-owl-1", "demo-owl-3"])
        await town.told(kinds.NODESET, "owl", "waking: owl-1")
        town.pods_run()
        scontrol.register("owl-1", "owl-3", state="IDLE")
        await until(
            lambda: (
                (town.status(kinds.NODESET, "owl")["readyReplicas"], town.status(kinds.NODESET, "owl")["asleep"])
                == (2, 2)
            )
        )
        town.later = 3700.0
        town.apply(
            kinds.NODESET, "owl", {"clusterRef": {"name": "demo"}, "powerSaving": POWER, "resources": SIZE, "weight": 1}
        )
        await until(lambda: "update NodeName=owl-[1,3] State=POWER_DOWN" in scontrol.said[said:])
        await until(lambda: not owls(town))
        scontrol.doze_off()
        await until(lambda: town.status(kinds.NODESET, "owl")["asleep"] == 4)
        assert len(scontrol.said) == said + 1


async def test_who_has_registered_and_is_not_ready_yet_lacks_nothing():
    """Slurm hears of slurmd some seconds before Kubernetes looks; the set is available meanwhile, and wants what is awake."""
    async with sleeping(POWER) as (town, scontrol):
        assert town.status(kinds.NODESET, "owl")["desiredReplicas"] == 0
        scontrol.wake("owl-1", "owl-3")
        await until(lambda: len(owls(town)) == 2)
        scontrol.register("owl-1", "owl-3")
        await until(lambda: town.status(kinds.NODESET, "owl")["allocated"] == 2)
        await town.settle(quiet=0.6)
        status = town.status(kinds.NODESET, "owl")
        assert (status["why"], status["desiredReplicas"], status["readyReplicas"], status["asleep"]) == ("", 2, 0, 2)
        assert parts(town)["Available"]["status"] == "True"


async def test_an_image_that_does_not_start_is_said_at_once_and_told_to_slurm_in_time():
    """The set says which image it is while its node wakes; then its jobs are given back, and nobody else is tried in vain."""
    hasty = POWER | {"resumeTimeout": "30s", "retryAfter": "1h"}
    async with sleeping(hasty) as (town, scontrol):
        scontrol.wake("owl-0")
        await until(lambda: owls(town))
        waits = {"reason": "ImagePullBackOff", "message": "Back-off pulling image nowhere/slurm:1"}
        status = {"name": "slurmd", "image": "nowhere/slurm:1", "state": {"waiting": waits}}
        said = {"phase": "Pending", "containerStatuses": [status]}
        town.machine("m0")
        town.place("demo-owl-0", "m0")
        town.fake.world.change(kinds.POD, (NS, "demo-owl-0"), {"status": said}, sub="status")
        await town.told(kinds.NODESET, "owl", "waking: owl-0 (pod demo-owl-0: ")
        await town.told(kinds.NODESET, "owl", "nowhere/slurm:1")
        town.later = 40.0
        town.apply(
            kinds.NODESET,
            "owl",
            {"clusterRef": {"name": "demo"}, "powerSaving": hasty, "resources": SIZE, "shmSize": "65Mi"},
        )
        await until(lambda: not owls(town))
        denied = [each for each in scontrol.said if "State=DOWN Reason=soperator: no capacity: " in each]
        assert len(denied) == 1
        assert denied[0].startswith("update NodeName=owl-[0-3] ")
        assert "nowhere/slurm:1" in denied[0]
        await town.told(kinds.NODESET, "owl", "4 nodes do not wake: no capacity: ")
        assert parts(town)["Available"]["reason"] == "NoCapacity"


async def wake(many):
    """Wake so many nodes of 500; the requests besides one for each pod, the commands to slurmctld, and the seconds that it took."""
    async with sleeping({"maxNodes": 500, "suspendTime": "1h"}) as (town, scontrol):
        await town.settle(quiet=0.3)
        asked, said = len(town.fake.requests), len(scontrol.said)
        names = [f"owl-{index}" for index in range(many)]
        began = time.monotonic()
        scontrol.wake(*names)
        await until(lambda: len(owls(town)) == many)
        town.pods_run()
        scontrol.register(*names)
        await until(lambda: town.status(kinds.NODESET, "owl")["readyReplicas"] == many)
        took = time.monotonic() - began
        return len(town.fake.requests) - asked - many, len(scontrol.said) - said, took


async def test_a_wake_costs_one_request_for_each_node_and_a_few_for_the_status():
    """Fifty times the nodes are not one request more besides their pods, and slurmctld, which woke them, is told nothing."""
    few, many = await wake(10), await wake(500)
    assert few[1] == many[1] == 0
    assert max(few[0], many[0]) <= 12


async def test_where_there_is_no_machine_slurm_is_told_so_and_asked_again_later():
    """One command takes all nodes of the set out, with the reason; the NodeSet says it; after the back-off one brings them back."""
    hasty = POWER | {"resumeTimeout": "30s", "retryAfter": "1h"}
    async with sleeping(hasty) as (town, scontrol):
        scontrol.wake("owl-0")
        await until(lambda: owls(town) == ["demo-owl-0"])
        town.later = 40.0
        town.apply(
            kinds.NODESET,
            "owl",
            {
                "clusterRef": {"name": "demo"},
                "powerSaving": hasty,
                "resources": SIZE,
                "nodeFailure": {"replaceAfter": "9m"},
            },
        )
        await until(lambda: not owls(town))
        assert any(
            each.startswith("update NodeName=owl-[0-3] State=DOWN Reason=soperator: no capacity: ")
            for each in scontrol.said
        )
        await town.told(kinds.NODESET, "owl", "nodes do not wake: no capacity: ")
        assert parts(town)["Available"]["reason"] == "NoCapacity"


async def test_an_operator_whose_clock_is_ahead_gives_up_no_node_that_wakes():
    """By such a clock each is late as soon as its pod is made, and its job would be queued again for ever, or end; it says so."""
    async with sleeping(POWER | {"retryAfter": "1m"}) as (town, scontrol):
        town.later, said = 86400.0, len(scontrol.said)
        scontrol.wake("owl-0")
        await until(lambda: owls(town) == ["demo-owl-0"])
        await asyncio.sleep(60)
        assert not [each for each in scontrol.said[said:] if "State=DOWN" in each]
        await town.told(kinds.NODESET, "owl", "clock", longest=30)
        town.later = 0.0
        await asyncio.sleep(30)
        assert "clock" not in town.says(kinds.NODESET, "owl")


@pytest.mark.parametrize(
    ("written", "ahead", "tried"), [(0.0, 0.0, False), (0.0, 86400.0, False), (86400.0, 0.0, True)]
)
async def test_a_node_that_did_not_wake_is_tried_again_by_the_right_clock(written, ahead, tried):
    """An operator whose clock is ahead waits for `retryAfter` all the same, and a reason from a slurmctld whose clock was ahead holds up no node."""
    async with sleeping(POWER | {"retryAfter": "1h"}) as (town, scontrol):
        town.later, said = ahead, len(scontrol.said)
        at = {"set": True, "number": int(town.slurm.wall() + written)}
        denied = {"reason": f"{DENIED}no machine", "reason_set_by_user": "slurm", "reason_changed_at": at}
        town.slurm.nodes["owl-0"] |= denied | {"state": ["CLOUD", "DOWN", "DYNAMIC_NORM", "POWERED_DOWN"]}
        await asyncio.sleep(60)
        assert bool([each for each in scontrol.said[said:] if "State=IDLE" in each]) == tried
        assert ("clock" in town.status(kinds.NODESET, "owl")["why"]) == bool(ahead)


async def test_a_node_that_wakes_keeps_its_pod_while_clocks_differ():
    """By a clock that is ahead its slurmd has been ready for long, before it can register: the pod would go, and no node would ever wake."""
    async with sleeping(POWER) as (town, scontrol):
        scontrol.wake("owl-0")
        await until(lambda: owls(town) == ["demo-owl-0"])
        uid = town.find(kinds.POD, "demo-owl-0")["metadata"]["uid"]
        town.later = 86400.0
        town.pods_run()
        await asyncio.sleep(10)
        assert town.find(kinds.POD, "demo-owl-0")["metadata"]["uid"] == uid
        await town.told(kinds.NODESET, "owl", "clock", longest=30)


async def test_a_node_that_registers_while_it_is_given_up_keeps_its_job():
    """The command to slurmctld takes long to come there; by then slurmd is there, and the job of the node, which cannot be queued again, runs."""
    hasty = POWER | {"resumeTimeout": "30s", "retryAfter": "1h"}
    async with sleeping(hasty) as (town, scontrol):

        async def late(*said):
            await asyncio.sleep(10.0 if "State=DOWN" in said[2] else 0.0)
            return await scontrol(*said)

        town.inside = late
        scontrol.wake("owl-0")
        await until(lambda: owls(town) == ["demo-owl-0"])
        await asyncio.sleep(35.0)
        town.pods_run()
        town.slurm.run(7, "owl-0")
        scontrol.register("owl-0")
        await asyncio.sleep(30.0)
        assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]
        assert owls(town) == ["demo-owl-0"]


async def test_sleepers_with_gpus_wake_while_another_configuration_waits():
    """They are made when slurmctld has their line of gres.conf; what is tried or refused later is no business of theirs, unless their GPUs change."""
    gpus = {"vendor": "nvidia", "count": 2}
    async with sleeping(POWER, gpu=gpus) as (town, scontrol):
        assert scontrol.said[0].endswith(" Gres=gpu:2")
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MessageTimeout=20"}}})
        await until(lambda: [name for name in town.names(kinds.POD) if "-trial-" in name])
        scontrol.wake("owl-1")
        await until(lambda: owls(town) == ["demo-owl-1"])
        said = len(scontrol.said)
        more = {"clusterRef": {"name": "demo"}, "powerSaving": POWER, "resources": SIZE, "gpu": gpus | {"count": 4}}
        town.apply(kinds.NODESET, "owl", more)
        await town.told(kinds.NODESET, "owl", "slurmctld does not run with the gres.conf of the NodeSet's GPUs yet")
        assert len(scontrol.said) == said


async def test_a_deleted_nodeset_leaves_no_record():
    """All records go in one command, and the object after them."""
    async with sleeping({"maxNodes": 500}) as (town, scontrol):
        await town.fake.api().delete(kinds.NODESET, "slurm", "owl")
        await until(lambda: town.find(kinds.NODESET, "owl") is None)
        assert not [name for name in town.slurm.nodes if name.startswith("owl-")]
        assert scontrol.said[-1] == "delete NodeName=owl-[0-499]"


async def test_a_suspended_job_on_a_pod_without_a_label_keeps_its_record():
    """Slurm calls the node idle, no pod of it is seen, and the set is to have fewer nodes."""
    async with sleeping(POWER) as (town, scontrol):
        scontrol.wake("owl-3")
        await until(lambda: owls(town) == ["demo-owl-3"])
        town.pods_run()
        town.slurm.run(7, "owl-3")
        scontrol.register("owl-3")
        town.slurm.suspend(7)
        await asyncio.sleep(3)
        found = town.find(kinds.POD, "demo-owl-3")
        kept = {key: value for key, value in found["metadata"]["labels"].items() if key != labels.NODESET}
        changed = found | {"metadata": found["metadata"] | {"labels": kept}}
        town.fake.world.replace(Where.at(kinds.POD, NS, "demo-owl-3"), changed, "kubectl")
        town.apply(
            kinds.NODESET,
            "owl",
            {"clusterRef": {"name": "demo"}, "powerSaving": POWER | {"maxNodes": 2}, "resources": SIZE},
        )
        await asyncio.sleep(30)
        assert "owl-3" in town.slurm.nodes
