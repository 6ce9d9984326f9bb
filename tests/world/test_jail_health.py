"""A node whose jail cannot be entered takes no jobs, says why, and comes back by itself."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube import kinds
from soperator.kube.exec import ExecFailed, Result
from soperator.kube.views import ConditionView, ObjectMeta, Pod, PodStatus
from soperator.reconcile.io.jail_watch_client import reason
from soperator.reconcile.io.volume_capacity import VolumeCapacity
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}
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
    assert ready["message"].startswith("no job step can start on worker-0")
    town.jail_is("demo-worker-0", is_well=True)
    await town.settle(quiet=0.6, longest=12)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    ready = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["JailReady"]
    assert (ready["status"], ready["message"]) == ("True", "")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("jail: /data does not answer within 5 s\n", "soperator: jail: /data does not answer within 5 s"),
        ("", None),
        ("ok\n", ""),
        ("ok\n\nreadOnly false\nroom 1 2 3 4 5\n", ""),
        ("\x07\n", "soperator: jail: it cannot be entered, for an unknown reason"),
        ("a\x1b[31mb\nReason=x", "soperator: jail: a[31mb"),
        ("x" * 999, "soperator: jail: " + "x" * 190),
    ],
)
def test_what_a_worker_says_becomes_one_plain_line(said, told):
    """Whoever answers on a worker's port cannot write more than a line of text into Slurm."""
    assert reason(said) == told


class Flooded:
    """Workers whose port does not answer; a look by way of the kubelet ends as it is said here, or fails."""

    def __init__(self) -> None:
        self.port: str | None = None
        self.look: Result | None = None
        self.looks: list[str] = []

    async def ask(self, ip):
        return self.port

    async def execute(self, api, target, command):
        assert (target.container, command[-1]) == ("jail", "--once")
        self.looks.append(target.pod)
        if self.look is None:
            raise ExecFailed("no answer")
        return self.look


@pytest.fixture
async def flooded():
    """A town and its workers, of which none answers on its port."""
    found = Flooded()
    async with operating(Town(), found.ask, execute=found.execute) as made:
        yield made, found


@pytest.mark.parametrize(
    ("port", "look"), [(None, Result(0, "", "")), (None, None), (None, Result(126, "", "no such program")), ("", None)]
)
async def test_a_port_that_does_not_answer_drains_no_node(flooded, port, look):
    """Anybody may keep the port from answering; a node is drained with a sentence about its jail, and with nothing else."""
    town, found = flooded
    found.port, found.look = port, look
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 20}})
    for number in range(20):
        town.jail_is(f"demo-worker-{number}", is_well=False)
    await town.settle(quiet=0.8)
    assert {str(each["state"]) for each in town.slurm.nodes.values()} == {"['IDLE']"}
    assert conditions_of(town)["JailReady"]["status"] == "True"
    assert port == "" or len(set(found.looks)) == 20


async def test_a_sick_jail_behind_a_silent_port_drains_its_node(flooded):
    """The kubelet's way is nobody else's: what a look there says is believed, and kept while nobody answers."""
    town, found = flooded
    found.look = Result(1, "", "soperator: jail: /mnt/jail/root does not answer within 5 s\n")
    await town.up(CLUSTER, WORKERS)
    town.jail_is("demo-worker-0", is_well=False)
    await town.settle(quiet=0.3)
    assert (town.slurm.nodes["worker-0"]["state"], town.slurm.nodes["worker-0"]["reason"]) == (["IDLE", "DRAIN"], SAID)
    assert conditions_of(town)["JailReady"]["message"].startswith(
        "no job step can start on worker-0: /mnt/jail/root does"
    )
    found.look = None
    town.later += 120
    town.jail_is("demo-worker-1", is_well=False)
    await town.settle(quiet=0.3)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE", "DRAIN"]
    assert town.slurm.nodes["worker-1"]["state"] == ["IDLE"]
    town.jail_is("demo-worker-0", is_well=True)
    await town.settle(quiet=0.6, longest=12)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]


async def test_a_jail_that_is_sick_again_says_what_is_wrong_this_time(flooded):
    """What it said the last time is forgotten when it is well, though Slurm keeps the reason of a node that was resumed."""
    town, found = flooded
    await town.up(CLUSTER, WORKERS)
    for sentence in (
        "/mnt/jail/root does not answer within 5 s",
        "mount point /var/spool/slurmd is missing in the jail",
    ):
        found.look = Result(1, "", f"soperator: jail: {sentence}\n")
        town.jail_is("demo-worker-0", is_well=False)
        await town.settle(quiet=0.3)
        node = town.slurm.nodes["worker-0"]
        assert (node["state"], node["reason"]) == (["IDLE", "DRAIN"], f"soperator: jail: {sentence}")
        town.jail_is("demo-worker-0", is_well=True)
        await town.settle(quiet=0.3)
        assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]


async def test_a_worker_that_has_just_begun_is_not_sick(town):
    """The container that looks at the jail is not ready before its first look; nobody drains the node for that."""
    await town.up(CLUSTER, WORKERS)
    status = {"name": "jail", "ready": False, "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {"phase": "Running", "conditions": [ready], "containerStatuses": [status]}
    town.fake.world.change(kinds.POD, (NS, "demo-worker-0"), {"status": said}, sub="status")
    await town.settle(quiet=0.3)
    assert town.slurm.nodes["worker-0"]["state"] == ["IDLE"]
    assert "it is starting" in town.says(kinds.NODESET, "worker")


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
        "the shared root is 96 % full, 812 MiB are left: enlarge claim demo-jail, or remove unneeded files"
    )
    assert [each["state"] for each in town.slurm.nodes.values()] == [["IDLE"], ["IDLE"]]
    assert conditions_of(town)["Available"]["status"] == "True"


async def test_whether_there_is_room_is_asked_once_a_minute():
    """Within a minute the answer is what it was; then it is asked for again. A worker that does not answer says nothing."""
    now, heard = [0.0], []

    async def hear(ip):
        heard.append(ip)
        return "ok\n" if len(heard) == 1 else ""

    room = VolumeCapacity(lambda: now[0], hear)
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec())
    ready = ConditionView("Ready", "True")
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
            "enlarge claim demo-state",
        ),
        (
            "jail: /var/spool/slurmctld does not answer within 5 s\n",
            "NotAnswering",
            "repair the volume of claim demo-state",
        ),
    ],
)
async def test_what_a_pod_says_of_its_own_volume_is_a_condition(said, reason, words):
    """Of slurmctld's state and of the database: it is told with the claim and the remedy."""

    async def hear(ip):
        assert ip == "10.0.0.2"
        return said

    spec = SlurmClusterSpec.model_validate({"controller": {"state": {"name": "demo-state"}}})
    status = PodStatus(pod_ip="10.0.0.2", conditions=(ConditionView("Ready", "True"),))
    found = [Pod(metadata=ObjectMeta(name="demo-controller-0"), status=status)]
    (told,) = await VolumeCapacity(lambda: 0.0, hear).of_state(Cluster("slurm", "demo", "uid", spec), found)
    assert (told.status == "True", told.reason) == (reason == "Enough", reason)
    assert words in told.message
    (told,) = await VolumeCapacity(lambda: 0.0, hear).of_database(Cluster("slurm", "demo", "uid", spec), found)
    assert (told.type, told.status == "True", told.reason) == ("DatabaseHasRoom", reason == "Enough", reason)
    assert words.replace("demo-state", "demo-database") in told.message
    assert not await VolumeCapacity(lambda: 0.0, hear).of_database(Cluster("slurm", "demo", "uid", spec), [])


@pytest.mark.parametrize("line", ["readOnly true", "readOnly: true", "readOnly=1"])
@pytest.mark.parametrize(
    ("of", "kind", "claim"), [("of_jail", "JailHasRoom", "demo-jail"), ("of_state", "StateHasRoom", "demo-state")]
)
async def test_a_volume_that_has_become_read_only_is_told(of, kind, claim, line):
    """A file system that met a disk error is mounted so by the kernel, and has as much room as before; its sizes are read beside it."""

    async def hear(_ip):
        return f"ok\n\nroom 100 90 10 9 25\n{line}\n"

    cluster, room = Cluster("slurm", "demo", "uid", SlurmClusterSpec()), VolumeCapacity(lambda: 0.0, hear)
    meta = ObjectMeta(name="demo-worker-0", labels={labels.ROLE: "worker"})
    found = [Pod(metadata=meta, status=PodStatus(pod_ip="10.0.0.1", conditions=(ConditionView("Ready", "True"),)))]
    (told,) = await getattr(room, of)(cluster, found)
    assert (told.type, told.status, told.reason) == (kind, "False", "ReadOnly")
    assert f"claim {claim}" in told.message
    assert [each[2].size for each in room.measured()] == [100]


@pytest.mark.parametrize("line", ["readOnly false", "readOnly: 0", ""])
async def test_a_volume_that_can_be_written_has_room(line):
    """A pod of an older image says nothing of it."""

    async def hear(_ip):
        return f"ok\n\n{line}\nroom 100 90 10 9 25\n"

    meta = ObjectMeta(name="demo-worker-0", labels={labels.ROLE: "worker"})
    found = [Pod(metadata=meta, status=PodStatus(pod_ip="10.0.0.1", conditions=(ConditionView("Ready", "True"),)))]
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec())
    (told,) = await VolumeCapacity(lambda: 0.0, hear).of_jail(cluster, found)
    assert (told.status, told.reason) == ("True", "Enough")


@pytest.mark.parametrize(("claim", "loses"), [("demo-jail", "every user's files"), ("demo-state", "the queue")])
async def test_a_claim_that_is_being_deleted_is_told_while_it_can_be_saved(claim, loses):
    """Pods that mount it hold it back until the last of them ends; the sentence names the volume to be kept, and goes with the deletion."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        assert conditions_of(town)["ClaimsKept"]["status"] == "True"
        patch = {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}, "spec": {"volumeName": "pv-7"}}
        town.fake.world.change(kinds.PVC, (NS, claim), patch)
        town.fake.world.remove(kinds.PVC, NS, claim)
        await until(lambda: conditions_of(town)["ClaimsKept"]["status"] == "False")
        told = conditions_of(town)["ClaimsKept"]
        assert told["reason"] == "BeingDeleted"
        assert claim in told["message"]
        assert loses in told["message"]
        assert "kubectl patch pv pv-7" in told["message"]
        assert claim in town.says(kinds.SLURMCLUSTER, "demo")
        assert conditions_of(town)["Available"]["status"] == "True"
