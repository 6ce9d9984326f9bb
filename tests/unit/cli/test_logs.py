"""`soperator logs` finds the pod and the container by what people call them."""

from pathlib import Path

import pytest
import yaml

from soperator.cli.cluster.logs import LogRequest, find_logs, is_about, read_log, seconds_of
from soperator.cli.support.errors import CliError
from soperator.cli.support.find_pods import CONTAINERS
from soperator.kube import kinds
from soperator.kube.exec import Target
from soperator.render.parts import labels
from tests.unit.cli.slurm_stub import SlurmStub
from tests.unit.cli.test_status import seed
from tests.unit.fake_api import FakeApi

GOLDEN = Path(__file__).parents[2] / "golden"


def pod(fake, name, of, namespace="slurm"):
    meta = {"name": name, "namespace": namespace, "labels": of}
    fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": {}})


@pytest.fixture
def fake():
    """A cluster with a controller, two login nodes and a worker, and the operator elsewhere."""
    fake = FakeApi()
    seed(fake, kinds.SLURMCLUSTER, "demo", {}, {})
    pod(fake, "demo-controller-0", labels.role("demo", "controller"))
    pod(fake, "demo-login-0", labels.role("demo", "login"))
    pod(fake, "demo-login-1", labels.role("demo", "login"))
    pod(fake, "demo-worker-0", labels.worker("demo", "worker"))
    of_chart = {"app.kubernetes.io/name": "soperator", "app.kubernetes.io/component": "operator"}
    pod(fake, "soperator-x", of_chart, "soperator-system")
    fake.logs["demo-worker-0", "slurmd"] = (
        "slurmd: launch task StepId=6.0\nslurmstepd: [6.0] error: x\nslurmd: [16.0] y\n"
    )
    return fake


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("controller", ["slurm/demo-controller-0[slurmctld]"]),
        ("login", ["slurm/demo-login-0[sshd]", "slurm/demo-login-1[sshd]"]),
        ("worker-0", ["slurm/demo-worker-0[slurmd]"]),
        ("demo-login-1", ["slurm/demo-login-1[sshd]"]),
        ("operator", ["soperator-system/soperator-x[operator]"]),
    ],
)
async def test_a_role_a_node_and_a_pod_are_found(fake, what, found):
    """Each with the container whose log people mean."""
    assert [str(each) for each in await find_logs(fake.api(), "slurm", "demo", what)] == found


async def test_a_job_is_found_on_its_nodes(fake, tmp_path):
    """And in slurmctld's log; the nodes are those that Slurm names, also of a heterogeneous job."""
    slurm = SlurmStub(tmp_path)
    slurm.answers(
        "scontrol",
        [{"": "JobId=6 ReqNodeList=(null) NodeList=worker-[0-1] BatchHost=worker-0"}, {"": "JobId=7 NodeList=gpu-3 "}],
    )
    found = await find_logs(fake.api(), "slurm", "demo", "6", slurm.run)
    assert [each.pod for each in found] == ["demo-controller-0", "demo-worker-0", "demo-worker-1", "demo-gpu-3"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("worker", "give one Slurm node, such as worker-0"),
        ("rest", "it has no pod of role rest"),
        ("foo", "foo: SlurmCluster demo has no pod of this node; roles with a log are accounting, "),
    ],
)
async def test_what_has_no_log_is_answered_with_what_has(fake, what, words):
    """Not with Kubernetes' 404."""
    with pytest.raises(CliError, match=words):
        await find_logs(fake.api(), "slurm", "demo", what)


async def test_lines_are_those_of_the_job(fake):
    """Of job 6 and not of job 16; without a job all, or the last ones."""
    target = Target("slurm", "demo-worker-0", "slurmd")

    async def lines(request):
        return [each async for each in read_log(fake.api(), target, request)]

    assert await lines(LogRequest(job="6", tail=1)) == ["slurmd: launch task StepId=6.0", "slurmstepd: [6.0] error: x"]
    assert await lines(LogRequest(tail=1)) == ["slurmd: [16.0] y"]
    with pytest.raises(CliError, match=r"slurm/demo-worker-0\[munged\]: container munged is not valid"):
        _ = [each async for each in read_log(fake.api(), Target("slurm", "demo-worker-0", "munged"), LogRequest())]


@pytest.mark.parametrize(
    ("text", "job", "about"),
    [
        ("slurmctld: _job_complete: JobId=16 done", "16", True),
        ("prolog: [6] job 6 was requeued", "6", True),
        ("sched: Allocate JobId=160 NodeList=worker-0", "16", False),
        ("slurmstepd: [42.batch] x", "42", True),
    ],
)
def test_a_line_is_about_a_job_by_its_whole_number(text, job, about):
    """In each form that the daemons write."""
    assert is_about(text, job) is about


def test_options_become_kubernetes_parameters():
    """And a span of time is checked here, because Kubernetes knows only seconds."""
    request = LogRequest(tail=5, since=seconds_of("10m"), follow=True, previous=True)
    wanted = {"container": "sshd", "tailLines": "5", "sinceSeconds": "600", "follow": "true", "previous": "true"}
    assert request.parameters("sshd") == wanted
    for span in ("10", "0m", "1w", "-5s"):
        with pytest.raises(CliError, match="--since"):
            seconds_of(span)


def test_each_role_has_its_container():
    """Held against the rendered pods, so that a renamed container takes this table along."""
    found = {}
    for path in GOLDEN.glob("*/*.yaml"):
        obj = yaml.safe_load(path.read_text())
        template = (
            obj
            if obj["kind"] == "Pod"
            else obj.get("spec", {}).get("template")
            if isinstance(obj.get("spec"), dict)
            else None
        )
        role = (template or {}).get("metadata", {}).get("labels", {}).get(labels.ROLE, "")
        if role:
            spec = template["spec"]
            found.setdefault(role, set()).update(
                each["name"] for each in [*spec.get("initContainers", []), *spec["containers"]]
            )
    assert {role: CONTAINERS[role] in names for role, names in found.items() if role in CONTAINERS} == dict.fromkeys(
        CONTAINERS.keys() & found.keys(), True
    )
    assert {"controller", "login", "rest", "worker", "accounting", "populate"} <= found.keys()
