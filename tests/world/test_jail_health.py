"""A node whose jail cannot be entered takes no jobs, says why, and comes back by itself."""

import pytest

from soperator.control.word import reason
from soperator.kube import kinds
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"cluster": "demo", "replicas": 2}}
SAID = "soperator: jail: /mnt/jail/root does not answer within 5 s"


@pytest.fixture
async def town():
    """An operator that runs over empty fakes; each worker that it asks for says that its jail hangs."""

    async def ask(ip):
        assert ip == "10.0.0.1"
        return SAID

    async with operating(Town(), ask) as made:
        yield made


async def test_a_sick_jail_drains_its_node_with_its_own_words_until_it_is_well(town):
    """The reason in Slurm, the NodeSet and JailReady say the same, and all is as before when the jail answers again."""
    await town.up(CLUSTER, WORKERS)
    town.jail_is("demo-worker-0", is_well=False)
    await town.settle(quiet=0.3)
    node = town.slurm.nodes["worker-0"]
    assert (node["state"], node["reason"]) == (["IDLE", "DRAIN"], SAID)
    assert town.slurm.nodes["worker-1"]["state"] == ["IDLE"]
    ready = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["JailReady"]
    assert (ready["status"], ready["reason"]) == ("False", "NotAnswering")
    assert ready["message"].startswith("no step can begin on worker-0")
    town.jail_is("demo-worker-0", is_well=True)
    await town.settle(quiet=0.6, longest=12)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    ready = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["JailReady"]
    assert (ready["status"], ready["message"]) == ("True", "")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("jail: /data does not answer within 5 s\n", "soperator: jail: /data does not answer within 5 s"),
        ("", "soperator: jail: it cannot be entered, and nobody says why"),
        ("ok\n", "soperator: jail: it cannot be entered, and nobody says why"),
        ("a\x1b[31mb\nReason=x", "soperator: jail: a[31mb"),
        ("x" * 999, "soperator: jail: " + "x" * 190),
    ],
)
def test_what_a_worker_says_becomes_one_plain_line(said, told):
    """Whoever answers on a worker's port cannot write more than a line of text into Slurm."""
    assert reason(said) == told


async def test_a_worker_that_has_just_begun_is_not_sick(town):
    """The container that looks at the jail is not ready before its first look; nobody drains the node for that."""
    await town.up(CLUSTER, WORKERS)
    status = {"name": "jail", "ready": False, "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {"phase": "Running", "conditions": [ready], "containerStatuses": [status]}
    town.fake.world.change(kinds.POD, (NS, "demo-worker-0"), {"status": said}, sub="status")
    await town.settle(quiet=0.3)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    assert "it is starting" in town.status(kinds.NODESET, "worker")["why"]
