"""Scaling out and in, with jobs on the nodes."""

from collections.abc import Iterator

import pytest

from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def two(lab: Lab) -> Iterator[None]:
    """Two nodes as before, whatever a test leaves."""
    yield
    scale(lab, 2)
    lab.wait_available()


def scale(lab: Lab, replicas: int) -> None:
    """What an administrator or an autoscaler does."""
    lab.kubectl("scale", "nodeset/worker", f"--replicas={replicas}")


def states(lab: Lab) -> dict[str, str]:
    """Slurm's nodes and their states."""
    return dict(line.split() for line in lab.ssh("alice", "sinfo -h -N -o '%N %T'").splitlines())


def test_a_third_node_takes_part_in_a_job(lab: Lab, alice: str) -> None:
    """`kubectl scale` to 3 makes a node on which a job over three nodes runs."""
    scale(lab, 3)
    lab.timed("scale out: kubectl scale → the third node is idle", lambda: states(lab).get("worker-2") == "idle", 60)
    assert sorted(lab.ssh(alice, "srun -N3 hostname").split()) == ["worker-0", "worker-1", "worker-2"]
    lab.wait_available()
    assert lab.look("nodeset", "worker")["status"]["readyReplicas"] == 3


def test_scaling_in_takes_the_idle_node_first_and_waits_for_the_job(lab: Lab, alice: str) -> None:
    """From 3 to 1 the idle node in the middle goes at once, a busy one when its job has ended by itself; then their records in Slurm go too."""
    kept, held = lab.hold("worker-0"), lab.hold("worker-2")
    scale(lab, 1)
    lab.timed("scale in: kubectl scale → the idle pod is gone", lambda: "demo-worker-1" not in lab.pods("worker"), 60)
    assert (held.state(), kept.state()) == ("RUNNING", "RUNNING")
    assert states(lab)["worker-2"] == "draining"
    assert "deletionTimestamp" not in lab.pods("worker")["demo-worker-2"]["metadata"]
    held.let_go()
    lab.timed("scale in: the job has ended → its pod is gone", lambda: set(lab.pods("worker")) == {"demo-worker-0"}, 60)
    lab.timed("scale in: the pod is gone → so is Slurm's record", lambda: set(states(lab)) == {"worker-0"}, 30)
    scale(lab, 2)
    lab.wait_available()
    assert set(states(lab)) == {"worker-0", "worker-1"}
    kept.let_go()
