"""Workers that slurmctld would forget: it keeps a node that registered in memory alone, and slurmd never tells it twice."""

import os
import signal
import time

import pytest

from tests.cluster.lab import Lab
from tests.cluster.processes import processes

pytestmark = pytest.mark.cluster

#: slurmctld writes its state at most each 5 s, and the operator looks each 2 s.
WRITTEN = 10
KEYS = "SLURM_SACK_KEY=/run/soperator/keys/slurm.key SLURM_SACK_JWKS=/run/soperator/keys/slurm.jwks"
SCONTROL = f"{KEYS} /opt/soperator/bin/scontrol"


def test_slurmctld_killed_soon_after_a_worker_came_still_knows_it(lab: Lab, alice: str) -> None:
    """No job and no drain gave it a reason to write the node down; the operator did."""
    if not lab.target.is_local:
        pytest.skip("the first process of a container is killed from its Node")
    lab.patch("nodeset", "worker", {"replicas": 3})
    lab.wait_available()
    time.sleep(WRITTEN)
    for pid in processes("slurmctld", f"{lab.cluster}-controller-0"):
        os.kill(pid, signal.SIGKILL)
    lab.until("slurmctld is new", lambda: restarts(lab) > 0, 30)
    lab.timed("slurmctld killed → all nodes are idle", lambda: idle(lab, alice) == 3, 30)
    assert "worker-2" not in told(lab)
    held = [lab.hold("worker-0"), lab.hold("worker-1")]
    lab.patch("nodeset", "worker", {"replicas": 2})
    lab.until("the third is gone", lambda: "demo-worker-2" not in lab.pods("worker"), 60)
    for each in held:
        each.let_go()
    lab.wait_available()


def test_a_forgotten_worker_registers_again_beside_a_running_job(lab: Lab, alice: str) -> None:
    """Somebody deletes a record while slurmd runs: the NodeSet says so, an event tells what was done, and the other node's job goes on."""
    held = lab.hold("worker-0")
    inside(lab, f"{SCONTROL} delete nodename=worker-1")
    lab.until("the NodeSet tells", lambda: "worker-1 has not registered" in lab.says("nodeset", "worker"), 20)
    lab.timed("a node is forgotten → it takes jobs", lambda: idle(lab, alice) == 1, 45)
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    assert "worker-1: Slurm does not know the node" in told(lab)
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


def told(lab: Lab) -> str:
    """The events of workers that were told to register."""
    return lab.kubectl("get", "events", "--field-selector=reason=Registering", "-o", "custom-columns=SAID:.message")
