"""Keys are rotated when that is asked for, stage by stage, and the cluster says how far it is."""

import asyncio
import base64
import json

import pytest

from soperator.kube import kinds
from soperator.kube.errors import Unreachable
from soperator.kube.exec import Result
from soperator.render.parts import labels
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}
ASKED = {"demo-controller-0", "demo-login-0", "demo-worker-0"}
DAEMONS = {"controller": "slurmctld", "login": "sackd", "worker": "slurmd"}


class Pods:
    """Containers in which commands run: what they were told, and which do not answer."""

    def __init__(self):
        self.told, self.silent, self.late = [], set(), {}

    async def execute(self, _api, target, command):
        """Do as told; a pod in `late` says not yet, as often as it is said there."""
        if target.pod in self.silent:
            raise Unreachable(f"{target}: no route to host")
        if self.late.get(target.pod, 0):
            self.late[target.pod] -= 1
            return Result(3, "the kubelet has not brought the new keys yet\n", "")
        self.told.append((target.pod, *command[1:3], *(word.split(":")[0] for word in command[3:])))
        return Result(0, "", "")


@pytest.fixture
async def pods():
    return Pods()


@pytest.fixture
async def town(pods):
    """A cluster that is up, with an operator whose commands in containers `pods` answers."""
    async with operating(Town(), execute=pods.execute) as made:
        await made.up(CLUSTER, WORKERS)
        daemons_begin(made)
        await made.settle()
        yield made


def daemons_begin(town, sidecar=""):
    """Let the kubelets say that the daemons run, each with this sidecar beside it."""
    for each in list(town.fake.world.objects.values()):
        daemon = DAEMONS.get(each["metadata"].get("labels", {}).get("slurm.soperator.io/role", ""))
        if each["kind"] == "Pod" and daemon:
            running = {"name": daemon, "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
            name, status = each["metadata"]["name"], each.get("status", {}) | {"containerStatuses": [running]}
            status |= {"initContainerStatuses": [running | {"name": sidecar}]} if sidecar else {}
            town.fake.world.change(kinds.POD, (NS, name), {"status": status}, sub="status")


def keys(town):
    """The ids of Slurm's keys in the Secret, the one that signs first."""
    data = town.find(kinds.SECRET, "demo-auth-key")["data"]
    return [each["kid"] for each in json.loads(base64.b64decode(data["slurm.jwks"]))["keys"]]


def settled(town):
    """The condition KeysSettled."""
    return next(each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"] if each["type"] == "KeysSettled")


async def until(town, holds, longest=8.0):
    """Wait for something that follows from passes a second apart."""
    end = asyncio.get_running_loop().time() + longest
    while not holds():
        assert asyncio.get_running_loop().time() < end, settled(town)
        await asyncio.sleep(0.05)


async def test_without_a_request_no_key_is_touched(town, pods):
    """Secrets are as they were made, and no container is asked anything."""
    assert (settled(town)["status"], settled(town)["reason"]) == ("True", "Made")
    assert not pods.told
    assert not [each for each in town.fake.writes() if each.startswith("patch secrets")]


async def test_a_rotation_goes_on_when_every_daemon_has_answered(town, pods):
    """The daemon that is late is named; then the new key signs, REST has another, and the former one stays while it is believed."""
    before = town.find(kinds.SECRET, "demo-jwt-key")["data"]
    host_keys = town.find(kinds.SECRET, "demo-ssh-host-keys")
    pods.late["demo-worker-1"] = 2
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"auth": {"rotateRequest": "2026-11"}})
    await until(town, lambda: not pods.late["demo-worker-1"])
    await until(town, lambda: stage(town) == "Settling")
    assert keys(town) == ["2026-11", ":first"]
    assert town.find(kinds.SECRET, "demo-jwt-key")["data"] != before
    assert town.find(kinds.SECRET, "demo-ssh-host-keys") == host_keys
    assert pods.told.count(("demo-worker-1", "take", "slurmd", "slurm.jwks")) == 2
    assert ("demo-controller-0", "take", "slurmctld", "slurm.jwks", "jwt_hs256.key") in pods.told
    assert settled(town)["status"] == "False"


async def test_a_daemon_that_does_not_answer_is_waited_for(town, pods):
    """The stage is not left, the condition names the pod, and the protection of workers is untouched."""
    pods.silent.add("demo-worker-0")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"auth": {"rotateRequest": "x"}})
    await until(town, lambda: "3 of 4" in settled(town)["message"] or "2 of 4" in settled(town)["message"])
    assert "; pod demo-worker-0: slurm/demo-worker-0[slurmd]: no route to host" in settled(town)["message"]
    assert (settled(town)["status"], settled(town)["reason"]) == ("False", "Rotating")
    assert stage(town) == "Known"
    assert keys(town) == [":first", "x"]
    assert town.find(kinds.POD, "demo-worker-1")["metadata"]["labels"][labels.PROTECTED] == "true"


async def test_a_cluster_that_is_made_with_a_request_has_new_keys_already(pods):
    """The word is noted on the Secrets when they are made."""
    async with operating(Town(), execute=pods.execute) as town:
        await town.up(CLUSTER | {"auth": {"rotateRequest": "2026-11"}}, WORKERS)
        assert not pods.told
        await until(town, lambda: town.status(kinds.SLURMCLUSTER, "demo").get("keys") == "2026-11")


def stage(town):
    """How far the Secret says that it is."""
    found = town.find(kinds.SECRET, "demo-auth-key")["metadata"].get("annotations", {})
    return found.get("slurm.soperator.io/rotation-stage", "")


async def test_munged_is_asked_beside_every_daemon(pods):
    """It runs as a sidecar, which Kubernetes lists among the init containers; without its answer nothing goes on."""
    async with operating(Town(), execute=pods.execute) as town:
        munge = CLUSTER | {"auth": {"type": "munge"}}
        await town.up(munge, WORKERS)
        daemons_begin(town, sidecar="munged")
        await town.settle()
        pods.silent.add("demo-worker-1")
        town.apply(kinds.SLURMCLUSTER, "demo", munge | {"auth": {"type": "munge", "rotateRequest": "2026-11"}})
        await until(town, lambda: {each[0] for each in pods.told if each[2] == "munged"} >= ASKED)
        assert (stage(town), settled(town)["reason"]) == ("Laid", "Rotating")
        pods.silent.clear()
        await until(town, lambda: ("demo-worker-1", "look", "munged", "munge.key") in pods.told)


@pytest.mark.parametrize("label", [labels.ROLE, labels.CLUSTER, labels.NODESET, labels.MANAGED_BY])
async def test_a_worker_whose_label_somebody_took_off_is_waited_for(town, pods, label):
    """Its slurmd runs, and Slurm says so; without the new key it would understand nobody who signs with that, and its job were lost."""
    town.slurm.run(7, "worker-1")
    pods.silent.add("demo-worker-1")
    found = town.find(kinds.POD, "demo-worker-1")
    kept = {key: value for key, value in found["metadata"]["labels"].items() if key != label}
    changed = found | {"metadata": found["metadata"] | {"labels": kept}}
    town.fake.world.replace(Where.at(kinds.POD, NS, "demo-worker-1"), changed, "kubectl")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"auth": {"rotateRequest": "2026-11"}})
    await until(town, lambda: stage(town) == "Known")
    await asyncio.sleep(30)
    assert stage(town) == "Known"
    assert "worker-1" in settled(town)["message"]
    pods.silent.clear()
    wanted = town.find(kinds.POD, "demo-worker-0")["metadata"]["labels"] | {labels.INDEX: "1"}
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"metadata": {"labels": wanted}})
    await until(town, lambda: stage(town) == "Settling", longest=60)
