"""A Secret with keys that somebody deletes or edits, while daemons run with what it held."""

import asyncio
import base64

import pytest

from soperator.kube import kinds
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating, until
from tests.world.test_rotation import CLUSTER, WORKERS, Pods, daemons_begin, keys, settled, stage

SECRETS = ["demo-auth-key", "demo-jwt-key", "demo-ssh-host-keys"]
MUNGE = CLUSTER | {"auth": {"type": "munge"}}


@pytest.fixture
async def town():
    """A cluster whose daemons run."""
    async with operating(Town(), execute=Pods().execute) as made:
        await made.up(CLUSTER, WORKERS)
        daemons_begin(made)
        await made.settle()
        yield made


def data(town, name):
    """The files of a Secret, None where it is gone."""
    found = town.find(kinds.SECRET, name)
    return found["data"] if found else None


def remove(town, *names):
    """What `kubectl delete secret` does."""
    for each in names:
        town.fake.world.remove(kinds.SECRET, NS, each)


async def restart(town):
    """Let a new operator have a second over what the former one left."""
    async with operating(town, execute=Pods().execute):
        await asyncio.sleep(1)


@pytest.mark.parametrize("name", SECRETS)
async def test_a_deleted_key_comes_back_as_it_was(town, name):
    """Within a second the Secret has the same files, labels and owner, and no pod is touched."""
    before, pods = town.find(kinds.SECRET, name), town.names(kinds.POD)
    remove(town, name)
    await asyncio.sleep(1)
    after = town.find(kinds.SECRET, name)
    assert after["data"] == before["data"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert town.names(kinds.POD) == pods
    assert settled(town)["status"] == "True"


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("edit", ["other", "missing", "more"])
async def test_a_key_that_was_edited_by_hand_is_put_back(town, name, edit):
    """Other bytes, a file that is missing, and a slurm.jwks that nobody made are all undone within a second."""
    before = data(town, name)
    file = next(iter(before))
    edits = {
        "other": before | {file: base64.b64encode(b"another key").decode()},
        "missing": {each: before[each] for each in before if each != file},
        "more": before | {"slurm.jwks": base64.b64encode(b"{}").decode()},
    }
    world, key = town.fake.world, (NS, name)
    world.replace(world_place(name), town.find(kinds.SECRET, name) | {"data": edits[edit]}, "kubectl")
    assert world.find(kinds.SECRET, *key)["data"] != before
    await asyncio.sleep(1)
    assert data(town, name) == before


def world_place(name):
    """Where a Secret is."""
    return Where.at(kinds.SECRET, NS, name)


async def test_the_labels_and_the_owner_of_a_key_come_back(town):
    """Without its owner a key would outlive its cluster."""
    before = town.find(kinds.SECRET, "demo-auth-key")["metadata"]
    stripped = town.find(kinds.SECRET, "demo-auth-key") | {"metadata": {**before, "labels": {}, "ownerReferences": []}}
    town.fake.world.replace(world_place("demo-auth-key"), stripped, "kubectl")
    await asyncio.sleep(1)
    after = town.find(kinds.SECRET, "demo-auth-key")["metadata"]
    assert after["labels"] == before["labels"]
    assert after["ownerReferences"] == before["ownerReferences"]


async def test_a_deleted_copy_is_made_again(town):
    """The next deletion is undone too."""
    before = data(town, "demo-auth-key")
    remove(town, "demo-auth-key-kept")
    await asyncio.sleep(1)
    remove(town, "demo-auth-key")
    await asyncio.sleep(1)
    assert data(town, "demo-auth-key") == before


async def test_an_edited_copy_is_no_key(town):
    """What the copy says counts only as long as nobody wrote to it."""
    before = data(town, "demo-auth-key")
    town.fake.world.change(kinds.SECRET, (NS, "demo-auth-key-kept"), {"data": {"slurm.key": "eA=="}})
    await asyncio.sleep(1)
    assert data(town, "demo-auth-key") == before == data(town, "demo-auth-key-kept")


@pytest.mark.parametrize("name", ["demo-auth-key", "demo-jwt-key"])
async def test_a_key_that_is_gone_with_its_copy_is_not_made_anew_while_daemons_run(town, name):
    """The cluster says what is lost and what to do; the key comes by hand, and the wrong one is refused."""
    before = data(town, name)
    remove(town, f"{name}-kept", name)
    await asyncio.sleep(10)
    assert data(town, name) is None
    assert data(town, f"{name}-kept") is None
    said = settled(town)
    assert (said["status"], said["reason"]) == ("False", "KeyLost")
    assert f"Secrets {name} and {name}-kept are missing" in said["message"]
    assert "demo-controller-0" in said["message"]
    assert f"Secrets {name}" in town.says(kinds.SLURMCLUSTER, "demo")
    meta = {"name": name, "namespace": NS}
    wrong = dict.fromkeys(before, base64.b64encode(b"another").decode())
    town.fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": wrong})
    await asyncio.sleep(10)
    assert settled(town)["reason"] == "OtherKey"
    assert data(town, f"{name}-kept") is None
    remove(town, name)
    town.fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": before})
    await asyncio.sleep(10)
    assert settled(town)["status"] == "True"
    assert data(town, f"{name}-kept") == before


async def test_a_restarted_operator_makes_no_other_key_either():
    """What was lost while no operator ran is lost all the same."""
    town = Town()
    async with operating(town, execute=Pods().execute):
        await town.up(CLUSTER, WORKERS)
        daemons_begin(town)
        await asyncio.sleep(10)
    remove(town, "demo-auth-key", "demo-auth-key-kept")
    await restart(town)
    assert data(town, "demo-auth-key") is None


async def test_where_no_daemon_has_the_key_another_is_made(town):
    """Who deletes key, copy and every pod has a cluster that starts with a new key."""
    before = data(town, "demo-auth-key")
    remove(town, "demo-auth-key", "demo-auth-key-kept")
    for each in town.names(kinds.POD):
        town.fake.world.remove(kinds.POD, NS, each)
    await asyncio.sleep(2)
    assert data(town, "demo-auth-key") not in (None, before)


async def test_host_keys_that_are_deleted_with_their_copy_are_made_anew(town):
    """It is how they are changed on purpose."""
    before = data(town, "demo-ssh-host-keys")
    remove(town, "demo-ssh-host-keys-kept", "demo-ssh-host-keys")
    await asyncio.sleep(2)
    assert data(town, "demo-ssh-host-keys") not in (None, before)


async def test_another_kind_of_authentication_finds_no_key_and_says_so(town):
    """Nothing is written; the sentence names the file, and the way out."""
    before = data(town, "demo-auth-key")
    town.apply(kinds.SLURMCLUSTER, "demo", MUNGE)
    await asyncio.sleep(10)
    assert data(town, "demo-auth-key") == before
    said = settled(town)
    assert (said["status"], said["reason"]) == ("False", "KeyIncomplete")
    assert "munge.key" in said["message"]


async def test_a_rotation_whose_secret_is_deleted_goes_on_from_the_copy():
    """Content and stage come back together, and at its end the former key is in neither of the two."""
    pods, town = Pods(), Town()
    pods.silent.add("demo-worker-0")
    town.keep_time()
    async with operating(town, execute=pods.execute):
        await town.up(CLUSTER, WORKERS)
        daemons_begin(town)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"auth": {"rotateRequest": "x"}})
        await until(lambda: stage(town) == "Known")
        remove(town, "demo-auth-key")
        await until(lambda: data(town, "demo-auth-key"))
        assert stage(town) == "Known"
        pods.silent.clear()
        await until(lambda: settled(town)["status"] == "True", 300)
        assert stage(town) == ""
        assert data(town, "demo-auth-key") == data(town, "demo-auth-key-kept")
        assert keys(town) == ["x"]


async def test_a_key_that_a_person_brought_is_kept_as_theirs():
    """It has no labels and no owner, and comes back without them."""
    town = Town()
    meta = {"name": "demo-auth-key", "namespace": NS}
    key = {"slurm.key": base64.b64encode(b"mine" * 64).decode()}
    town.fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": key})
    async with operating(town, execute=Pods().execute):
        await town.up(CLUSTER, WORKERS)
        remove(town, "demo-auth-key")
        await asyncio.sleep(1)
        found = town.find(kinds.SECRET, "demo-auth-key")
        assert found["data"] == key
        assert "ownerReferences" not in found["metadata"]
