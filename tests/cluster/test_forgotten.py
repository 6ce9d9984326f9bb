"""Workers that slurmctld would forget: it keeps a node that registered in memory alone, and slurmd never tells it twice."""

import os
import signal
import time

import pytest

from tests.cluster import hang
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

#: slurmctld writes its state at most each 5 s, and the operator looks each 2 s.
WRITTEN = 10
SCONTROL = "SLURM_SACK_KEY=/run/soperator/keys/slurm.key /opt/soperator/bin/scontrol"


def test_slurmctld_killed_soon_after_a_worker_came_still_knows_it(lab: Lab, alice: str) -> None:
    """No job and no drain gave it a reason to write the node down; the operator did."""
    if not lab.target.is_local:
        pytest.skip("the first process of a container is killed from its Node")
    lab.patch("nodeset", "worker", {"replicas": 3})
    try:
        lab.wait_available()
        time.sleep(WRITTEN)
        before = started(lab, alice, "worker-2")
        for pid in hang.processes("slurmctld", f"{lab.cluster}-controller-0"):
            os.kill(pid, signal.SIGKILL)
        lab.until("slurmctld is new", lambda: restarts(lab) > 0, 30)
        lab.timed("slurmctld killed → all nodes are idle", lambda: idle(lab, alice) == 3, 30)
        assert started(lab, alice, "worker-2") == before, "its slurmd had to be told to register"
    finally:
        lab.patch("nodeset", "worker", {"replicas": 2})
        lab.wait_available()


def test_a_forgotten_worker_registers_again_beside_a_running_job(lab: Lab, alice: str) -> None:
    """Somebody deletes a record while slurmd runs: the NodeSet says so, an event tells what was done, and the other node's job goes on."""
    held = lab.hold("worker-0")
    inside(lab, f"{SCONTROL} delete nodename=worker-1")
    lab.until(
        "the NodeSet tells", lambda: "worker-1 has not registered" in lab.status("nodeset", "worker").get("why", ""), 20
    )
    lab.timed("a node is forgotten → it takes jobs", lambda: idle(lab, alice) == 1, 45)
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    assert "Slurm does not know it" in lab.kubectl("get", "events", "--field-selector=reason=Register")
    held.let_go()
    lab.wait_available()


def inside(lab: Lab, command: str) -> None:
    """Run a command beside slurmctld."""
    lab.kubectl("exec", f"{lab.cluster}-controller-0", "-c", "slurmctld", "--", "sh", "-c", command)


def restarts(lab: Lab) -> int:
    """How often the controller's containers were started again."""
    pod = lab.pods("controller")[f"{lab.cluster}-controller-0"]
    return sum(each["restartCount"] for each in pod["status"]["containerStatuses"])


def idle(lab: Lab, user: str) -> int:
    """How many nodes take jobs, as login hears it; none while slurmctld is away."""
    said = lab.ssh(user, "sinfo -h -N -t idle -o %N || true").split()
    return len([each for each in said if each.startswith("worker-")])


def started(lab: Lab, user: str, node: str) -> str:
    """When a node's slurmd started."""
    words = lab.ssh(user, f"scontrol show node {node}").split()
    return next(each for each in words if each.startswith("SlurmdStartTime="))
