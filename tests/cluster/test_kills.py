"""Any pod may die: the cluster comes back by itself, and jobs on workers go on."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.lab import OPERATOR, Held, Lab, is_ready

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def held(lab: Lab, alice: str) -> Held:
    """A job on worker-0 that runs through all of it."""
    return lab.hold("worker-0")


def kill(lab: Lab, name: str, role: str) -> Callable[[], bool]:
    """Kill a pod's processes; return the question whether it is gone and as many as before do its work."""
    before = of_role(lab, role)
    namespace = before[name]["metadata"]["namespace"]
    lab.kubectl("delete", "pod", name, "-n", namespace, "--grace-period=1", "--wait=false")

    def is_replaced() -> bool:
        found = of_role(lab, role)
        gone = before[name]["metadata"]["uid"] not in [pod["metadata"]["uid"] for pod in found.values()]
        return gone and len(found) == len(before) and all(map(is_ready, found.values()))

    return is_replaced


def of_role(lab: Lab, role: str) -> dict[str, dict[str, Any]]:
    """The pods of a role, of which the operator is one."""
    if role != "operator":
        return lab.pods(role)
    found = lab.pods(namespace=OPERATOR)
    return {name: pod for name, pod in found.items() if name.startswith("soperator-")}


@pytest.mark.parametrize("role", ["operator", "controller", "rest", "login"])
def test_a_killed_pod_comes_back_while_a_job_runs(lab: Lab, held: Held, role: str) -> None:
    """After the kill the cluster is available again, takes jobs, and the job that ran goes on."""
    began = time.monotonic()
    lab.until(f"the pod of {role} is replaced", kill(lab, next(iter(of_role(lab, role))), role), 90)
    lab.wait_available(90)
    lab.timings.note(f"{role} killed → available again", time.monotonic() - began)
    assert lab.ssh("alice", "srun -w worker-1 hostname") == "worker-1\n"
    lab.timings.note(f"{role} killed → a new job has run", time.monotonic() - began)
    assert held.state() == "RUNNING"
    assert held.show()["Restarts"] == "0"


def test_the_job_that_ran_through_all_kills_ends_by_itself(held: Held) -> None:
    """It ran once, on its node, and its whole output is there."""
    held.let_go()


def test_a_killed_idle_worker_is_idle_again(lab: Lab, alice: str) -> None:
    """The pod comes back under its name, and Slurm's node takes jobs again."""
    began = time.monotonic()
    lab.until("the worker's pod is replaced", kill(lab, "demo-worker-1", "worker"), 60)
    lab.until("the node is idle", lambda: lab.ssh(alice, "sinfo -h -n worker-1 -o %T").strip() == "idle", 60)
    took = time.monotonic() - began
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    lab.timings.note("worker killed → its Slurm node is idle again, and takes a job", took)
    assert sorted(lab.ssh(alice, "srun -N2 hostname").split()) == ["worker-0", "worker-1"]
    lab.wait_available()
