"""A node whose jail cannot be entered takes no jobs, says why, and comes back by itself."""

import pytest

from soperator.api.cluster import SlurmClusterSpec
from soperator.control.room import Room
from soperator.control.word import reason
from soperator.kube import kinds
from soperator.kube.views import Condition, ObjectMeta, Pod, PodStatus
from soperator.render import labels
from soperator.render.model import Cluster
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


async def test_an_almost_full_jail_is_a_condition_until_there_is_room(town_that_hears):
    """One worker is asked; what its second line says is told with the claim and the remedy, no node is drained, and it goes with the cause."""
    town, said = town_that_hears
    said["text"] = "ok\njail: the shared root is 96 % full, 812 MiB are left\n"
    await town.up(CLUSTER, WORKERS)
    town.jail_is("demo-worker-0", is_well=True)
    await town.settle(quiet=0.3)
    room = conditions_of(town)["JailHasRoom"]
    assert (room["status"], room["reason"]) == ("False", "AlmostFull")
    assert room["message"] == (
        "the shared root is 96 % full, 812 MiB are left: enlarge the claim demo-jail, or remove files that nobody needs"
    )
    assert [each["state"] for each in town.slurm.nodes.values()] == [["IDLE"], ["IDLE"]]
    assert conditions_of(town)["Available"]["status"] == "True"


async def test_whether_there_is_room_is_asked_once_a_minute():
    """Within a minute the answer is what it was; then it is asked for again. A worker that does not answer says nothing."""
    now, heard = [0.0], []

    async def hear(ip):
        heard.append(ip)
        return "ok\n" if len(heard) == 1 else ""

    room = Room(lambda: now[0], hear)
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec())
    ready = Condition("Ready", "True")
    meta = ObjectMeta(name="demo-worker-0", labels={labels.ROLE: "worker"})
    found = [Pod(metadata=meta, status=PodStatus(pod_ip="10.0.0.1", conditions=(ready,)))]
    told = []
    for now[0] in (0.0, 59.0, 61.0):
        told.append([each.status for each in await room.of_jail(cluster, found)])
    assert (told, heard) == ([["True"], ["True"], []], ["10.0.0.1"] * 2)


@pytest.fixture
async def town_that_hears():
    """An operator that runs over empty fakes, and what its workers answer."""
    said = {"text": ""}

    async def hear(ip):
        return said["text"]

    async with operating(Town(), hear=hear) as made:
        yield made, said


def conditions_of(town):
    """The cluster's conditions by type."""
    return {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("ok\n", "Enough", ""),
        (
            "ok\njail: the state of slurmctld is 100 % full, 0 MiB are left\n",
            "AlmostFull",
            "enlarge the claim demo-state",
        ),
        (
            "jail: /var/spool/slurmctld does not answer within 5 s\n",
            "NotAnswering",
            "mend the volume of claim demo-state",
        ),
    ],
)
async def test_what_a_pod_says_of_its_own_volume_is_a_condition(said, reason, words):
    """Of slurmctld's state and of the database: it is told with the claim and the remedy."""

    async def hear(ip):
        assert ip == "10.0.0.2"
        return said

    spec = SlurmClusterSpec.model_validate({"controller": {"state": {"name": "demo-state"}}})
    status = PodStatus(pod_ip="10.0.0.2", conditions=(Condition("Ready", "True"),))
    found = [Pod(metadata=ObjectMeta(name="demo-controller-0"), status=status)]
    (told,) = await Room(lambda: 0.0, hear).of_state(Cluster("slurm", "demo", "uid", spec), found)
    assert (told.status == "True", told.reason) == (reason == "Enough", reason)
    assert words in told.message
    (told,) = await Room(lambda: 0.0, hear).of_database(Cluster("slurm", "demo", "uid", spec), found)
    assert (told.type, told.status == "True", told.reason) == ("DatabaseHasRoom", reason == "Enough", reason)
    assert words.replace("demo-state", "demo-database") in told.message
    assert not await Room(lambda: 0.0, hear).of_database(Cluster("slurm", "demo", "uid", spec), [])
