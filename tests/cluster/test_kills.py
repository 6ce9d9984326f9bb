"""Any pod may die: the cluster comes back by itself, and jobs on workers go on."""

import time

import pytest

from tests.cluster.lab import OPERATOR, Held, Lab, is_ready

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def held(lab: Lab, alice: str) -> Held:
    """A job on worker-0 that runs through all of it."""
    return lab.hold("worker-0")


def kill(lab: Lab, name: str, namespace: str) -> str:
    """Kill a pod's processes and return the pod's identity."""
    uid = str(lab.pods(namespace=namespace)[name]["metadata"]["uid"])
    lab.kubectl("delete", "pod", name, "-n", namespace, "--grace-period=1", "--wait=false")
    return uid


def is_replaced(lab: Lab, uid: str, role: str) -> bool:
    """Whether a pod is gone and all that do its work are ready."""
    found = operators(lab) if role == "operator" else lab.pods(role)
    gone = uid not in [pod["metadata"]["uid"] for pod in found.values()]
    return gone and bool(found) and all(map(is_ready, found.values()))


def operators(lab: Lab) -> dict[str, dict]:
    """The operator's pods."""
    found = lab.pods(namespace=OPERATOR)
    return {name: pod for name, pod in found.items() if name.startswith("soperator-")}


@pytest.mark.parametrize("role", ["operator", "controller", "rest", "login"])
def test_a_killed_pod_comes_back_while_a_job_runs(lab: Lab, held: Held, role: str) -> None:
    """After the kill the cluster is available again, takes jobs, and the job that ran goes on."""
    namespace = OPERATOR if role == "operator" else lab.namespace
    name = next(iter(operators(lab) if role == "operator" else lab.pods(role)))
    began = time.monotonic()
    uid = kill(lab, name, namespace)
    lab.until(f"the pod of {role} is replaced", lambda: is_replaced(lab, uid, role), 90)
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
    uid = kill(lab, "demo-worker-1", lab.namespace)
    lab.until("the worker's pod is replaced", lambda: is_replaced(lab, uid, "worker"), 60)
    lab.until("the node is idle", lambda: lab.ssh(alice, "sinfo -h -n worker-1 -o %T").strip() == "idle", 60)
    lab.timings.note("worker killed → its Slurm node is idle again", time.monotonic() - began)
    assert lab.ssh(alice, "srun -N2 hostname | sort") == "worker-0\nworker-1\n"
    lab.wait_available()
