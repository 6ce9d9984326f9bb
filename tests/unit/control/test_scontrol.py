"""Requeueing a job by a command in slurmctld's pod."""

import httpx2
import pytest

from soperator.api.cluster import SlurmClusterSpec
from soperator.control.scontrol import requeue
from soperator.kube.api import Api
from soperator.render.model import Cluster
from soperator.slurmrest.client import SlurmError

CLUSTER = Cluster("slurm", "demo", "u", SlurmClusterSpec())


async def test_an_exec_that_fails_has_requeued_nothing():
    """A pod that is not there, or a refusal, is told as Slurm's own refusals are: the job counts as running."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(404, json={"reason": "NotFound", "message": "no such pod"})
    )
    async with Api(httpx2.AsyncClient(transport=transport, base_url="http://api")) as api:
        with pytest.raises(SlurmError, match="scontrol requeue 7: "):
            await requeue(api, CLUSTER, 7)
