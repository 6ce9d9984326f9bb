"""A change of the workers' template reaches all nodes and kills no job."""

import time

import pytest

from tests.cluster.lab import Lab, is_ready

pytestmark = pytest.mark.cluster


def test_a_rollout_waits_for_the_job(lab: Lab, alice: str) -> None:
    """Of two nodes the idle one is replaced first, the busy one drains, and is replaced when its job has ended by itself."""
    held = lab.hold("worker-0")
    before = uids(lab)
    lab.patch("nodeset", "worker", {"podTemplate": {"metadata": {"annotations": {"rolled": "test"}}}})
    lab.timed("rollout: kubectl patch → the idle node is replaced", lambda: new(lab) == {"worker-1"}, 60)
    assert uids(lab)["demo-worker-0"] == before["demo-worker-0"]
    lab.until("the busy node drains", lambda: "drain" in lab.ssh(alice, "sinfo -h -n worker-0 -o %T"), 30)
    assert "new pod template: annotation rolled" in lab.ssh(alice, "sinfo -h -R -n worker-0 -o %80E")
    assert held.state() == "RUNNING"
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    held.let_go()
    lab.timed("rollout: the job has ended → its node is replaced", lambda: new(lab) == {"worker-0", "worker-1"}, 60)
    assert before.items().isdisjoint(uids(lab).items())
    lab.patch("nodeset", "worker", {"podTemplate": None})
    lab.until("the former template is back", lambda: not new(lab) and lab.is_whole(), 90)


def test_features_and_weight_reach_busy_nodes_without_new_pods(lab: Lab, alice: str) -> None:
    """Slurm has them within seconds, the job goes on, a job by the new feature runs, and slurmctld loses neither when it reads its files again."""
    lab.wait_available()
    held, before = lab.hold("worker-0"), uids(lab)
    lab.patch("nodeset", "worker", {"features": ["blue"], "weight": 7})
    wanted = {"worker-0": "worker,blue 7", "worker-1": "worker,blue 7"}
    lab.timed("features and weight: kubectl patch → Slurm has them on every node", lambda: fields(lab) == wanted, 30)
    assert lab.ssh(alice, "srun -C blue -w worker-1 hostname") == "worker-1\n"
    lab.ssh("root", "scontrol reconfigure")
    time.sleep(5)
    lab.until("both are there after a reconfigure", lambda: fields(lab) == wanted, 60)
    assert (held.state(), uids(lab)) == ("RUNNING", before)
    held.let_go()
    lab.patch("nodeset", "worker", {"features": None, "weight": None})
    lab.until("both are gone again", lambda: set(fields(lab).values()) == {"worker 1"}, 30)
    lab.wait_available()
    assert uids(lab) == before


def uids(lab: Lab) -> dict[str, str]:
    """The workers' pods that are ready, with their identity."""
    return {name: pod["metadata"]["uid"] for name, pod in lab.pods("worker").items() if is_ready(pod)}


def new(lab: Lab) -> set[str]:
    """The nodes of the new template that are up."""
    rows = [line.split() for line in lab.ssh("alice", "sinfo -h -N -o '%N %t'").splitlines()]
    pods = {
        pod["spec"]["hostname"] for pod in lab.pods("worker").values() if "rolled" in pod["metadata"]["annotations"]
    }
    return {name for name, state in rows if name in pods and state in ("idle", "alloc", "mix")}


def fields(lab: Lab) -> dict[str, str]:
    """Features and weight of each node."""
    rows = [line.split(" ", 1) for line in lab.ssh("alice", "sinfo -h -N -o '%N %f %w'").splitlines()]
    return {name: text.strip() for name, text in rows}
