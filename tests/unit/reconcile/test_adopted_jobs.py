"""Which jobs of the queue a HealthCheck takes for its own after a restart."""

import dataclasses

import httpx2
import pytest

from soperator.policy.healthcheck.types import CheckHistory
from soperator.reconcile.healthcheck.reconciler import _learn
from soperator.slurm.check_job import PARTITION, RETEST
from soperator.slurm.job import CheckJob
from soperator.slurmrest.client import SlurmRest

OURS = CheckJob(7, "soperator-check-cpu", "w-[0-1]", PARTITION, frozenset({"RUNNING"}), owner="uid-1", user=0)


def test_a_job_of_the_operator_is_adopted():
    """It was submitted, and the operator died before the status said so."""
    found = _learn(CheckHistory(), [OURS, dataclasses.replace(OURS, number=8, partition=RETEST)], "uid-1").runs
    assert [(each.job, each.nodes, each.retest) for each in found] == [
        (7, ("w-0", "w-1"), False),
        (8, ("w-0", "w-1"), True),
    ]


@pytest.mark.parametrize(
    "other", [{"user": 1000}, {"user": None}, {"partition": "main"}, {"owner": "uid-2"}, {"node": "w-[0"}]
)
def test_a_job_that_anybody_could_have_submitted_is_not_adopted(other):
    """Name and comment are the user's to choose, and both can be read in the queue; a run that is adopted keeps its nodes from being checked."""
    assert _learn(CheckHistory(), [dataclasses.replace(OURS, **other)], "uid-1").runs == ()


class Jobs(httpx2.AsyncBaseTransport):
    """A queue with a job of root's and one of a user's under the same name."""

    async def handle_async_request(self, _request):
        jobs = [{"job_id": 7, "user_id": 0}, {"job_id": 8, "user_id": 1000}, {"job_id": 9}]
        return httpx2.Response(200, json={"jobs": [each | {"name": "soperator-check-cpu"} for each in jobs]})


async def test_only_roots_jobs_are_looked_at():
    """A user's thousand jobs of that name cost nothing either."""
    client = SlurmRest("http://rest", b"key", Jobs())
    assert [each.number for each in await client.runs("soperator-check-cpu")] == [7]
    await client.close()
