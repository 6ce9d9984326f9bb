"""Commands inside pods: a job that is requeued, a slurmd that registers."""

import httpx2
import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube.api import Api
from soperator.reconcile.io.slurm_exec import PodExec
from soperator.render.parts.model import Cluster
from soperator.slurmrest.client import SlurmError

CLUSTER = Cluster("slurm", "demo", "u", SlurmClusterSpec())


@pytest.fixture
async def api():
    """An API server that knows no pod."""
    answer = httpx2.Response(404, json={"reason": "NotFound", "message": "no such pod"})
    async with Api(httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: answer), base_url="http://api")) as made:
        yield made


async def test_an_exec_that_fails_has_requeued_nothing(api):
    """A pod that is not there, or a refusal, is told as Slurm's own refusals are: the job counts as running."""
    with pytest.raises(SlurmError, match="scontrol requeue 7: "):
        await PodExec(api).requeue(CLUSTER, "7", "w-0")


async def test_a_slurmd_that_cannot_be_told_is_a_refusal(api):
    """It is told again later."""
    with pytest.raises(SlurmError, match="SIGHUP to slurmd: "):
        await PodExec(api).register("slurm", "demo-worker-0")


async def test_a_backups_pod_is_asked_when_the_first_is_gone():
    """Each pod of slurmctld is tried in its order, and the first failure is what is told."""
    asked = []

    def answer(request):
        asked.append(request.url.path.split("/")[-2])
        return httpx2.Response(404, json={"reason": "NotFound", "message": f"no {asked[-1]}"})

    two = Cluster("slurm", "demo", "u", SlurmClusterSpec.model_validate({"controller": {"replicas": 2}}))
    async with Api(httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://api")) as api:
        with pytest.raises(SlurmError, match="no demo-controller-0"):
            await PodExec(api).requeue(two, "7", "w-0")
    assert asked == ["demo-controller-0", "demo-controller-1"]
