"""An upgrade of Slurm under a running job: slurmctld, the idle worker, the busy one when its job has ended, and login last.

A second tag of the same image stands for the new version.
"""

from typing import Any

import pytest

from local import images
from tests.cluster.lab import Lab, condition, is_ready

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

OTHER = f"{images.PREFIX}/slurm:{images.version()}"
DAEMONS = {"slurmctld", "slurmrestd", "slurmd", "sackd"}


def test_new_images_come_in_slurms_order_and_no_job_ends(lab: Lab, alice: str) -> None:
    """While a job runs its worker and login stay as they were; when it has ended by itself they follow, login last."""
    if not lab.target.is_local:
        pytest.skip("the images of a foreign cluster have tags of their own")
    held = lab.hold("worker-0")
    before = {name: pod["metadata"]["uid"] for name, pod in pods(lab).items()}
    try:
        lab.patch("slurmcluster", lab.cluster, {"images": {"slurm": OTHER}})
        first = {"demo-controller-0", "demo-worker-1"}
        lab.timed("upgrade: kubectl patch → slurmctld and the idle worker are new", lambda: first <= new(lab), 90)
        lab.until("login is waited with", lambda: condition(lab.status(), "UpToDate")["reason"] == "Workers", 20)
        assert held.state() == "RUNNING"
        assert {name: before[name] for name in ("demo-worker-0", "demo-login-0")}.items() <= uids(lab).items()
        held.let_go()
        lab.timed("upgrade: the job has ended → its worker and login are new", lambda: new(lab) == set(pods(lab)), 90)
        came = {name: (pod["metadata"]["creationTimestamp"], began(pod)) for name, pod in pods(lab).items()}
        assert came["demo-controller-0"][1] <= came["demo-worker-1"][0]
        assert max(came["demo-worker-0"][0], came["demo-worker-1"][0]) <= came["demo-login-0"][0]
        assert condition(lab.status(), "UpToDate")["status"] == "True"
    finally:
        lab.patch("slurmcluster", lab.cluster, {"images": None})
        lab.until("the former image is back everywhere", lambda: not new(lab) and lab.is_whole(), 120)


def pods(lab: Lab) -> dict[str, dict[str, Any]]:
    """The pods of the cluster's daemons; slurmrestd's, whose name is drawn, is called rest."""
    found = {name: pod for role in ("controller", "login", "worker") for name, pod in lab.pods(role).items()}
    rest = [pod for pod in lab.pods("rest").values() if is_ready(pod)]
    return found | ({"rest": rest[0]} if rest else {})


def uids(lab: Lab) -> dict[str, str]:
    """The identity of each pod."""
    return {name: pod["metadata"]["uid"] for name, pod in pods(lab).items()}


def new(lab: Lab) -> set[str]:
    """The pods that are ready and run Slurm from the other image."""
    return {name for name, pod in pods(lab).items() if is_ready(pod) and daemon(pod)["image"] == OTHER}


def daemon(pod: dict[str, Any]) -> dict[str, Any]:
    """The container with Slurm in it."""
    containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    return next(each for each in containers if each["name"] in DAEMONS)


def began(pod: dict[str, Any]) -> str:
    """When that container began."""
    name, status = daemon(pod)["name"], pod["status"]
    statuses = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return str(next(each["state"]["running"]["startedAt"] for each in statuses if each["name"] == name))
