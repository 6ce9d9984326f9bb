"""A change of the workers' template reaches all nodes and kills no job."""

import pytest

from tests.cluster.lab import Lab, is_ready

pytestmark = pytest.mark.cluster


def test_a_rollout_waits_for_the_job(lab: Lab, alice: str) -> None:
    """Of two nodes the idle one is replaced first, the busy one drains, and is replaced when its job has ended by itself."""
    held = lab.hold("worker-0")
    before = uids(lab)
    lab.patch("nodeset", "worker", {"features": ["blue"]})
    lab.timed(
        "rollout: kubectl patch → the idle node is replaced and has the new feature",
        lambda: blue(lab) == {"worker-1"},
        60,
    )
    assert uids(lab)["demo-worker-0"] == before["demo-worker-0"]
    lab.until("the busy node drains", lambda: "drain" in lab.ssh(alice, "sinfo -h -n worker-0 -o %T"), 30)
    assert held.state() == "RUNNING"
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    held.let_go()
    lab.timed("rollout: the job has ended → its node is replaced", lambda: blue(lab) == {"worker-0", "worker-1"}, 60)
    assert before.items().isdisjoint(uids(lab).items())
    lab.patch("nodeset", "worker", {"features": None})
    lab.until("the feature has gone again", lambda: not blue(lab) and lab.is_whole(), 90)


def uids(lab: Lab) -> dict[str, str]:
    """The workers' pods that are ready, with their identity."""
    return {name: pod["metadata"]["uid"] for name, pod in lab.pods("worker").items() if is_ready(pod)}


def blue(lab: Lab) -> set[str]:
    """The nodes that are up and have the feature."""
    rows = [line.split() for line in lab.ssh("alice", "sinfo -h -N -o '%N %t %b'").splitlines()]
    return {name for name, state, features in rows if "blue" in features and state in ("idle", "alloc", "mix")}
