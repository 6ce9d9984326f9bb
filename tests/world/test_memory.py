"""What the operator must remember outlives the status: wiped, as by a restore or a GitOps tool, with the operator killed between any two writes."""

import asyncio
import copy
import os

import pytest

from soperator.kube import kinds
from soperator.reconcile.memory.seal import seal, unseal
from soperator.render.parts import labels, names
from tests.unit.fake_world import Where
from tests.world import test_configuration as configuration
from tests.world import test_key_backups as backups
from tests.world import test_refill as refill
from tests.world.deep import BAD, CHECK, WORKERS, case, jobs, of, run_on
from tests.world.harness import NS, Town, operating, until
from tests.world.test_cluster import CLUSTER

OURS = (kinds.SLURMCLUSTER, kinds.NODESET, kinds.HEALTHCHECK, kinds.SLURMACCOUNT)
#: `make test` kills the operator after every write of a rotation and of the shorter acts, which is too long for `make world`.
_STEP = 1 if int(os.environ.get("SOPERATOR_MANY", "120")) >= 1000 else 5
OF_A_ROTATION, OF_OTHERS = range(0, 40, _STEP), range(0, 16, _STEP)
CHECK_MEMORY = names.memory("demo", "HealthCheck", "disk")


def wipe(town):
    """Lose the status of every object of our kinds, as a restore does."""
    for each in list(town.fake.world.objects.values()):
        if each["kind"] in {kind.kind for kind in OURS}:
            kind = next(kind for kind in OURS if kind.kind == each["kind"])
            town.fake.world.change(kind, (NS, each["metadata"]["name"]), {"status": None}, sub="status")


def forget(town):
    """Lose what is remembered, but not the status, as an operator without this memory left it."""
    gone = {"metadata": {"annotations": {labels.MEMORY: None}}}
    town.fake.world.change(kinds.CONFIGMAP, (NS, names.anchor("demo")), gone)
    if town.find(kinds.CONFIGMAP, CHECK_MEMORY):
        town.fake.world.remove(kinds.CONFIGMAP, NS, CHECK_MEMORY)


def remembered(town):
    """What is remembered of the cluster."""
    notes = town.find(kinds.CONFIGMAP, names.anchor("demo"))["metadata"].get("annotations", {})
    return (unseal(notes.get(labels.MEMORY, "")) or {}).get("cluster")


def pods(town):
    """The worker pods, with their uids."""
    found = {each: town.find(kinds.POD, each)["metadata"]["uid"] for each in town.names(kinds.POD)}
    return {each: uid for each, uid in found.items() if each.startswith("demo-worker-")}


async def tried(town):
    """Let a configuration that is to be applied pass its trial, and be applied."""
    for _ in range(4):
        await town.settle(quiet=1.2)
        if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)):
            town.trial_ends()


async def killed(town, after, act, **how):
    """Do something under an operator that is killed after so many writes, and lose the status."""
    town.fake.left = after
    async with operating(town, **how):
        done = asyncio.ensure_future(act())
        await until(lambda: done.done() or town.fake.down, 1000)
        done.cancel()
        await asyncio.wait([done])
    town.fake.down, town.fake.left = False, None
    wipe(town)


@pytest.mark.parametrize("after", OF_A_ROTATION)
async def test_a_rotation_goes_on_without_the_status(after):
    """No other key is made, none is doubted, and every daemon has the new one at the end."""
    daemons = backups.Daemons(town := Town())
    async with backups.working(town, daemons):
        await backups.begin(town, "slurm")
    before = pods(town)
    await killed(town, after, lambda: backups.rotate(town, daemons, "slurm", "one"), execute=daemons.execute)
    town.apply(kinds.SLURMCLUSTER, "demo", backups.spec("slurm", "one"))
    async with backups.working(town, daemons):
        await until(lambda: backups.is_done(town, "one"), 400)
        assert backups.data(town) == backups.data(town, f"{backups.AUTH}-kept")
        assert backups.keys(town) == ["one"]
        assert remembered(town)["keyDigests"] == town.status(kinds.SLURMCLUSTER, "demo")["keyDigests"]
    assert pods(town) == before


@pytest.mark.parametrize("after", OF_OTHERS)
async def test_a_configuration_is_applied_without_the_status(after):
    """It is tried and activated once more at most, and no worker is replaced."""
    async with operating(town := Town()):
        await town.up(CLUSTER, WORKERS)
    before = pods(town)

    async def change():
        town.apply(kinds.SLURMCLUSTER, "demo", configuration.EDIT)
        await tried(town)

    await killed(town, after, change)
    async with operating(town):
        await tried(town)
        assert "MaxStepCount=5" in configuration.conf(town)
        assert configuration.applied(town)[:2] == ("True", "Applied")
        assert remembered(town)["config"] == town.running == town.status(kinds.SLURMCLUSTER, "demo")["config"]
    assert pods(town) == before


@pytest.mark.parametrize("after", OF_OTHERS)
async def test_a_refill_is_carried_out_once_without_the_status(after):
    """The Job is made once; also when somebody deletes it later, which asks for nothing: the jail would be overwritten under its users."""
    async with operating(town := Town()):
        await town.up(CLUSTER, WORKERS)

    async def fill():
        town.apply(kinds.SLURMCLUSTER, "demo", refill.asked(request="a", mode="Overwrite"))
        await finish()

    async def finish():
        town.login_follows()
        for _ in range(4):
            await town.settle(quiet=0.6, longest=12)
            town.login_follows()
            if refill.job(town) and refill.job(town)["metadata"]["annotations"].get(labels.REQUEST) == "a":
                town.fill_jail()
                break
        await town.settle(quiet=0.6, longest=12)

    await killed(town, after, fill)
    async with operating(town):
        await finish()
        town.pods_run()
        await until(lambda: town.status(kinds.SLURMCLUSTER, "demo").get("refilled") == "a", 30)
        await until(lambda: all(each["state"] == ["IDLE"] for each in town.slurm.nodes.values()), 60)
        town.fake.world.remove(kinds.JOB, NS, "demo-populate")
    wipe(town)
    asked = len(town.slurm.asked)
    async with operating(town):
        await town.settle(quiet=0.6, longest=12)
        assert town.status(kinds.SLURMCLUSTER, "demo")["refilled"] == "a"
        assert not [each for each in town.slurm.asked[asked:] if each.startswith("POST node")]
        assert town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1


@pytest.mark.parametrize("after", OF_OTHERS)
async def test_a_check_goes_on_without_the_status(after):
    """Each node has run it as often as it would have, the failure counts, and the node that is drained for it stays drained."""
    async with operating(town := Town()):
        await town.up(CLUSTER, WORKERS)
    town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": 3, "onFailure": "Drain"})

    async def run():
        await tried(town)
        for node in ("worker-0", "worker-2"):
            if not ended(node):
                await run_on(town, node, "soperator exit=0\n")
        while len(ended("worker-1")) < 2:
            await run_on(town, "worker-1", BAD)
        await until(lambda: "DRAIN" in town.slurm.nodes["worker-1"]["state"], 60)

    def ended(node):
        return [
            each
            for each in town.slurm.jobs.values()
            if each["required_nodes"] == node and "COMPLETED" in each["job_state"]
        ]

    await killed(town, after, run)
    async with operating(town):
        await run()
        await until(lambda: case(town, "worker-1"), 60)
        assert case(town, "worker-1")["failures"] == 2
        assert [len(ended(each)) for each in ("worker-0", "worker-1", "worker-2")] == [1, 2, 1]
        await asyncio.sleep(10)
    wipe(town)
    town.slurm.jobs.clear()  # Slurm has forgotten them by now (MinJobAge)
    async with operating(town):
        await asyncio.sleep(30)
        assert case(town, "worker-1")["state"] == "Failing"
        assert "DRAIN" in town.slurm.nodes["worker-1"]["state"]
        assert town.slurm.jobs == {}
        await until(lambda: of(town)["summary"] == "2/3", 30)


@pytest.mark.parametrize("act", ["deleted", "edited", "cut", "relabelled", "orphaned"])
@pytest.mark.parametrize("is_away", [False, True])
async def test_memory_that_somebody_changes_is_as_it_was_soon(act, is_away):
    """While an operator runs it knows what it wrote; one that was away has the status. Nothing is done to nodes or pods either way."""
    async with operating(town := Town()):
        town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": 3, "onFailure": "Drain"})
        await town.up(CLUSTER, WORKERS)
        await tried(town)
        for node in ("worker-0", "worker-1", "worker-2"):
            await run_on(town, node, "soperator exit=0\n")
        await until(lambda: of(town)["summary"] == "3/3", 30)
        await asyncio.sleep(10)
        before, anchor, check = pods(town), remembered(town), copy.deepcopy(town.find(kinds.CONFIGMAP, CHECK_MEMORY))
        asked = len(town.slurm.jobs)
        if not is_away:
            change(town, act)
            await asyncio.sleep(10)
    if is_away:
        change(town, act)
    async with operating(town):
        await asyncio.sleep(10)
        assert remembered(town) == anchor
        found = town.find(kinds.CONFIGMAP, CHECK_MEMORY)
        assert (found["data"], found["metadata"]["labels"]) == (check["data"], check["metadata"]["labels"])
        assert found["metadata"]["ownerReferences"][0]["name"] == "disk"
        assert (pods(town), len(town.slurm.jobs)) == (before, asked)


def change(town, act):
    """What a person does to both objects."""
    anchor, check = town.find(kinds.CONFIGMAP, names.anchor("demo")), town.find(kinds.CONFIGMAP, CHECK_MEMORY)
    if act == "deleted":
        return forget(town)
    text = seal({"cluster": {"keyDigests": {"demo-auth-key": "0" * 32}}}) if act == "edited" else "0123 {"
    anchor = copy.deepcopy(anchor)
    anchor["metadata"]["annotations"][labels.MEMORY] = text.replace("demo-auth", "demo-auth2")
    town.fake.world.replace(Where.at(kinds.CONFIGMAP, NS, names.anchor("demo")), anchor, "kubectl")
    check = copy.deepcopy(check)
    if act == "relabelled":
        check["metadata"]["labels"] = {}
    elif act == "orphaned":
        check["metadata"]["ownerReferences"] = []
    else:
        check["data"]["memory"] = "0123 {" if act == "cut" else check["data"]["memory"][:-1]
    return town.fake.world.replace(Where.at(kinds.CONFIGMAP, NS, CHECK_MEMORY), check, "kubectl")


async def test_what_a_former_operator_had_in_the_status_alone_is_moved():
    """Its first pass writes down the same, in the middle of a rotation too, and nothing is lost when the status is wiped then."""
    daemons = backups.Daemons(town := Town())
    async with backups.working(town, daemons):
        await backups.begin(town, "slurm")
        await backups.rotate(town, daemons, "slurm", "one", "Signing")
        await backups.quick(town)
        before = remembered(town)
    forget(town)
    async with backups.working(town, daemons):
        await backups.quick(town)
        assert remembered(town) == before
    wipe(town)
    async with backups.working(town, daemons):
        await backups.quick(town)
        assert remembered(town)["keyDigests"] == before["keyDigests"]
        daemons.held = None
        await until(lambda: backups.is_done(town, "one"), 300)


async def test_nothing_is_written_while_nothing_happens():
    """What is remembered costs an idle cluster no request."""
    async with operating(town := Town()):
        await town.up(CLUSTER, WORKERS)
        await town.settle(quiet=1.0)
        before = town.fake.writes()
        await asyncio.sleep(120)
        assert town.fake.writes()[len(before) :] == []


async def test_a_check_takes_what_is_remembered_of_it_along():
    """Another check of this name begins with nothing."""
    async with operating(town := Town()):
        town.apply(kinds.HEALTHCHECK, "disk", CHECK | {"maxParallel": 3})
        await town.up(CLUSTER, WORKERS)
        await tried(town)
        await run_on(town, "worker-0", "soperator exit=0\n")
        await until(lambda: town.find(kinds.CONFIGMAP, CHECK_MEMORY), 30)
        await town.fake.api().delete(kinds.HEALTHCHECK, NS, "disk")
        for number in jobs(town, "PENDING"):
            await until(lambda number=number: "CANCELLED" in town.slurm.jobs[number]["job_state"], 60)
        await until(lambda: town.find(kinds.HEALTHCHECK, "disk") is None, 200)
        assert town.find(kinds.CONFIGMAP, CHECK_MEMORY) is None
