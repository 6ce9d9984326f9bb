"""A job whose processes ended with the container of slurmd, and which Slurm still calls running, is noticed, said and ended by slurmctld."""

from datetime import UTC, datetime

import pytest

from soperator.kube import kinds
from soperator.kube.exec import Result
from tests.world.harness import NS, Town, operating, until

pytestmark = pytest.mark.time_of_day
POD = "demo-worker-0"
CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}


class Slurmd:
    """Containers in which commands run; `hups` are the pods whose slurmd was told to register."""

    def __init__(self):
        self.hups = []

    async def __call__(self, _api, target, command):
        if command[-1] == "kill -HUP 1":
            self.hups.append(target.pod)
        return Result(0, "", "")


@pytest.fixture
async def slurmd():
    return Slurmd()


@pytest.fixture
async def town(slurmd):
    async with operating(Town(), execute=slurmd) as made:
        await made.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        yield made


def starts(town, at, restarts=1):
    """The kubelet has started the container of slurmd again at this time of day."""
    began = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"name": "slurmd", "ready": True, "restartCount": restarts, "state": {"running": {"startedAt": began}}}
    known = town.find(kinds.POD, POD)["status"] | {"containerStatuses": [status]}
    town.fake.world.change(kinds.POD, (NS, POD), {"status": known}, sub="status")


def runs(town, number, began):
    town.slurm.run(number, "worker-0")
    town.slurm.jobs[number]["start_time"] = {"set": True, "number": int(began)}


def why(town):
    return town.says(kinds.NODESET, "worker")


async def test_slurmd_registers_once_more_when_the_jobs_of_before_are_old_enough(town, slurmd):
    """Earlier slurmctld passes over them; what is wrong, and what a person can do, stands in the status until the job is gone."""
    now = town.wall()
    runs(town, 7, now - 12)
    starts(town, now - 10)
    await town.settle(quiet=0.5)
    assert slurmd.hups == []
    town.later += 25.0
    starts(town, now - 10, restarts=2)  # an event, as time passes in leaps here
    await until(lambda: slurmd.hups == [POD])
    await until(lambda: "job 7" in why(town) and "scontrol requeue" in why(town))
    del town.slurm.jobs[7]
    town.slurm.set("worker-0", "IDLE")
    await until(lambda: "job 7" not in why(town))
    assert slurmd.hups == [POD]


async def test_a_job_that_began_after_slurmd_is_left_alone(town, slurmd):
    """Nobody asks for the jobs again for this start."""
    now = town.wall()
    runs(town, 7, now - 30)
    await town.settle(quiet=0.5)
    starts(town, now - 60)
    await until(lambda: "GET jobs/" in town.slurm.asked)
    await town.settle(quiet=0.5)
    lists = town.slurm.asked.count("GET jobs/")
    starts(town, now - 60, restarts=2)
    town.slurm.set("worker-0", "MIXED")
    await town.settle(quiet=0.5)
    assert (slurmd.hups, town.slurm.asked.count("GET jobs/")) == ([], lists)
    assert "job 7" not in why(town)
