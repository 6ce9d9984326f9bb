"""A drain of a check that is gone, with no other check there, is taken back."""

import time

import pytest

from soperator.kube import kinds
from tests.world.harness import Town, operating, until

pytestmark = pytest.mark.time_of_day
CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}


async def test_the_drain_of_the_last_healthcheck_is_taken_back_when_it_is_gone():
    """It was deleted while Slurm was silent, and let go after a while: nobody else would ever lift its drain."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}})
        at = {"set": True, "number": int(time.time()) - 900}
        drained = {"reason": "soperator: check disk: slow", "reason_changed_at": at, "slurmd_start_time": at} | {
            "reason_set_by_user": "slurm"
        }
        town.slurm.set("worker-0", "IDLE", "DRAIN")
        town.slurm.nodes["worker-0"] |= drained
        await until(lambda: town.slurm.nodes["worker-0"]["state"] == ["IDLE"])
        assert town.find(kinds.NODESET, "worker") is not None
        town.slurm.set("worker-1", "IDLE", "DRAIN", reason="an administrator's")
        await town.settle(quiet=0.5)
        assert "DRAIN" in town.slurm.nodes["worker-1"]["state"]
