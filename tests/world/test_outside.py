"""Hosts outside Kubernetes (`soperator join`), which are nodes of Slurm and no pods: nobody pulls their slurmd along."""

import asyncio
from contextlib import asynccontextmanager

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.world.harness import NS, Town, operating, until
from tests.world.test_ending import delete, gone
from tests.world.test_rotation import CLUSTER, WORKERS, Pods, daemons_begin, settled, stage

ROTATED = CLUSTER | {"auth": {"rotateRequest": "2026-11"}}


@asynccontextmanager
async def running():
    """A cluster whose daemons run; a fixture would begin it in another time than the test's."""
    async with operating(Town(), execute=Pods().execute) as made:
        await made.up(CLUSTER, WORKERS)
        daemons_begin(made)
        await made.settle()
        yield made


def says_joined(town, request):
    """What `kubectl annotate slurmcluster` does."""
    said = {"metadata": {"annotations": {"slurm.soperator.io/joined": request}}}
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), said)


async def test_a_rotation_waits_until_hosts_outside_have_the_new_key():
    """They are named with what is to be done; a word that was said for another rotation is none for this."""
    async with running() as town:
        town.slurm.run(9, "bare")
        town.slurm.set("dead", "DOWN")
        await asyncio.sleep(1)
        says_joined(town, "2026-05")
        town.apply(kinds.SLURMCLUSTER, "demo", ROTATED)
        await asyncio.sleep(15)
        assert stage(town) == "Known", settled(town)["message"]
        assert "run soperator join again for bare, " in settled(town)["message"]
        assert "slurm.soperator.io/joined=2026-11" in settled(town)["message"]
        says_joined(town, "2026-11")
        await until(lambda: stage(town) == "Settling")


async def test_a_rotation_waits_for_slurm_to_say_which_hosts_there_are():
    """A silence is no proof that there are none."""
    async with running() as town:
        town.slurm.down = True
        await asyncio.sleep(20)
        town.apply(kinds.SLURMCLUSTER, "demo", ROTATED)
        await asyncio.sleep(15)
        assert stage(town) == "Known"
        assert "Slurm has not reported" in settled(town)["message"]
        town.slurm.down = False
        await until(lambda: stage(town) == "Settling")


async def test_a_node_that_sleeps_or_waits_for_its_pod_is_no_host_outside():
    """Its name says to which NodeSet it belongs, with or without a pod."""
    async with running() as town:
        town.slurm.set("worker-7", "IDLE", "POWERED_DOWN")
        await asyncio.sleep(1)
        town.apply(kinds.SLURMCLUSTER, "demo", ROTATED)
        await until(lambda: stage(town) == "Settling")


async def test_a_deleted_cluster_waits_for_jobs_of_hosts_outside():
    """Their slurmd has no finalizer; without slurmctld its jobs would be lost."""
    async with running() as town:
        town.slurm.run(9, "bare")
        await asyncio.sleep(1)
        delete(town, kinds.SLURMCLUSTER, "demo")
        await asyncio.sleep(8)
        assert town.find(kinds.SLURMCLUSTER, "demo")
        assert "jobs on bare, which is outside Kubernetes" in town.says(kinds.SLURMCLUSTER, "demo")
        town.slurm.set("bare", "IDLE")
        await gone(town, kinds.SLURMCLUSTER, "demo")


async def test_a_node_of_a_nodeset_whose_jobs_were_given_up_is_no_host_outside():
    """Slurm knows it as busy for another minute, and nobody waits for it."""
    async with running() as town:
        town.slurm.run(9, "worker-0")
        await asyncio.sleep(1)
        given_up = {"metadata": {"annotations": {labels.ABANDON: "true"}}}
        town.fake.world.change(kinds.NODESET, (NS, "worker"), given_up)
        delete(town, kinds.NODESET, "worker")
        await gone(town, kinds.NODESET, "worker")
        assert "ALLOCATED" in town.slurm.nodes["worker-0"]["state"]
        delete(town, kinds.SLURMCLUSTER, "demo")
        await gone(town, kinds.SLURMCLUSTER, "demo")
