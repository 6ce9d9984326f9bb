"""Storage that hangs or lacks something: nodes that cannot use it take no jobs, say so and come back; daemons do not notice."""

import time
from pathlib import Path

import pytest

from tests.cluster.hang import hanging
from tests.cluster.lab import Lab, condition
from tests.cluster.processes import processes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]

ROOT = "/mnt/jail/root"


def state(lab: Lab, node: str) -> str:
    """Slurm's state and reason of a node."""
    return lab.ssh("root", f"sinfo -h -N -n {node} -o '%T %E' | head -n 1").strip()


@pytest.fixture
def ours(lab: Lab) -> None:
    """Only where the pods' processes are in reach."""
    if not lab.target.is_local or not Path("/dev/fuse").exists():
        pytest.skip("the processes of a foreign cluster are not in reach, and a jail hangs by FUSE")


def test_a_node_whose_jail_hangs_is_drained_with_a_reason_and_comes_back(lab: Lab, alice: str, ours: None) -> None:
    """The other node goes on; Slurm, the NodeSet and JailReady say the same; nobody has to do anything."""
    lab.wait_available()
    pids = processes("/jail-watch", "worker-1") + processes("/slurmd", "worker-1")
    assert len(pids) >= 2
    began = time.monotonic()
    with hanging(ROOT, *pids):
        words = f"drained soperator: jail: {ROOT} does not answer within 5 s"
        lab.until("worker-1 is drained", lambda: state(lab, "worker-1") == words, 40)
        lab.timings.note("a worker's jail hangs → its node is drained with the reason", time.monotonic() - began)
        lab.until("JailReady names it", lambda: "worker-1" in condition(lab.status(), "JailReady")["message"], 10)
        assert condition(lab.status(), "JailReady")["reason"] == "NotAnswering"
        assert f"{ROOT} does not answer" in lab.says("nodeset", "worker")
        assert lab.ssh(alice, "srun hostname") == "worker-0\n"
        assert lab.ssh("root", "scontrol show node worker-1 | grep -c NOT_RESPONDING || true").strip() == "0"
    began = time.monotonic()
    lab.until("worker-1 is idle again", lambda: state(lab, "worker-1").startswith("idle"), 40)
    lab.timings.note("the jail answers again → its node takes jobs", time.monotonic() - began)
    assert sorted(lab.ssh(alice, "srun -N2 hostname").split()) == ["worker-0", "worker-1"]
    lab.wait_available()
    assert condition(lab.status(), "JailReady")["status"] == "True"


def test_a_mount_point_that_root_removes_stops_the_nodes_and_not_the_cluster(lab: Lab, alice: str, ours: None) -> None:
    """Without /var/spool/slurmd no step could begin: jobs wait instead of failing one after the other, until it is there again."""
    lab.ssh("root", "rmdir /var/spool/slurmd")
    try:
        words = "soperator: jail: mount point /var/spool/slurmd is missing in the jail"
        lab.until("both nodes are drained", lambda: all(words in state(lab, f"worker-{n}") for n in (0, 1)), 30)
        waiting = lab.ssh(alice, "sbatch --parsable -o waited.out --wrap 'echo ran'").strip()
        named = "no job step can start on worker-0, worker-1"
        lab.until("JailReady names both", lambda: condition(lab.status(), "JailReady")["message"].startswith(named), 15)
    finally:
        lab.ssh("root", "mkdir /var/spool/slurmd")
    lab.until("the job has run", lambda: "COMPLETED" in lab.ssh(alice, f"scontrol show job -o {waiting}"), 40)
    assert lab.ssh(alice, "cat waited.out") == "ran\n"
    lab.wait_available()


def test_slurmctld_answers_while_its_jail_hangs(lab: Lab, alice: str, ours: None) -> None:
    """It knows the users by the last good copy, and takes their jobs; a user who was made meanwhile is known when the jail answers again."""
    pids = processes("soperator.agents.identity", "demo-controller-0")
    assert pids
    with hanging(ROOT, *pids):
        assert lab.ssh(alice, "srun -N2 id -un") == "alice\nalice\n"
        lab.ssh("root", "useradd --create-home dave")
        time.sleep(6)
        assert lab.ssh(alice, "squeue -h --me; srun hostname | grep -c worker").strip() == "1"
    try:
        lab.until(
            "dave's job has run",
            lambda: lab.ssh("root", "cd /; runuser -u dave -- srun -Q id -un 2>/dev/null || true").strip() == "dave",
            90,
        )
    finally:
        lab.ssh("root", "userdel -rf dave 2>/dev/null || true")
