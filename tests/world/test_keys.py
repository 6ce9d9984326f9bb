"""A Secret with keys that somebody deletes or edits, while daemons run with what it held."""

import asyncio
import base64
import copy

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating, until
from tests.world.test_rotation import CLUSTER, WORKERS, Pods, daemons_begin, keys, settled, stage
from tests.world.test_stale import silence

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


MINE = {"slurm.key": base64.b64encode(b"mine" * 64).decode()}
FILES = {
    "demo-auth-key": MINE,
    "demo-jwt-key": {"jwt_hs256.key": "bWluZQ=="},
    "demo-ssh-host-keys": {"ssh_host_ed25519_key": "bWluZQ==", "ssh_host_ed25519_key.pub": "bWluZQ=="},
    "demo-database-password": {"password": "bWluZQ=="},
}


def put(town, name, files, **meta):
    """A Secret that another tool or a person makes."""
    named = {"name": name, "namespace": NS, **meta}
    town.fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": named, "data": files})


def begin(town, cluster):
    """A cluster and its NodeSet, as they are applied."""
    town.apply(kinds.SLURMCLUSTER, "demo", cluster)
    town.apply(kinds.NODESET, "worker", WORKERS["worker"])


def provide(town, name):
    """Say that a Secret is meant for the cluster."""
    town.fake.world.change(kinds.SECRET, (NS, name), {"metadata": {"annotations": {labels.BROUGHT_FOR: "demo"}}})


async def test_a_key_that_a_person_brought_is_kept_as_theirs():
    """It has no labels and no owner, and comes back without them, and as meant for the cluster."""
    town = Town()
    put(town, "demo-auth-key", MINE, annotations={labels.BROUGHT_FOR: "demo"})
    async with operating(town, execute=Pods().execute):
        await town.up(CLUSTER, WORKERS)
        remove(town, "demo-auth-key")
        await asyncio.sleep(1)
        found = town.find(kinds.SECRET, "demo-auth-key")
        assert found["data"] == MINE
        assert "ownerReferences" not in found["metadata"]
        assert found["metadata"]["annotations"][labels.BROUGHT_FOR] == "demo"
        assert settled(town)["status"] == "True"


@pytest.mark.parametrize("tail", ["", "-kept"])
@pytest.mark.parametrize("mark", [{}, {"labels": labels.role("other", "keys")}, {"labels": {labels.CLUSTER: "demo"}}])
@pytest.mark.parametrize("name", FILES)
async def test_a_foreign_secret_of_a_fitting_name_is_not_taken_for_a_key(name, tail, mark):
    """No pod that would mount it is made, it stays as it is, and the cluster comes up once the name is free."""
    town = Town()
    put(town, name + tail, FILES[name], **mark)
    before = town.find(kinds.SECRET, name + tail)
    async with operating(town, execute=Pods().execute):
        begin(town, CLUSTER | {"accounting": {"managedDatabase": {}}})
        await town.told(kinds.SLURMCLUSTER, "demo", f"Secret {name}{tail} is not of SlurmCluster demo")
        assert (settled(town)["status"], settled(town)["reason"]) == ("False", "KeyForeign")
        assert town.find(kinds.SECRET, name + tail) == before
        assert not [each for each in town.names(kinds.POD) if "trial" not in each]
        assert not town.names(kinds.STATEFULSET)
        assert not town.names(kinds.DEPLOYMENT)
        remove(town, name + tail)
        await until(lambda: town.find(kinds.STATEFULSET, "demo-controller") and settled(town)["reason"] == "Made")


@pytest.mark.parametrize("tail", ["", "-kept"])
async def test_a_foreign_secret_that_the_cache_does_not_have_yet_is_in_no_pod(tail):
    """The API server refuses the creation, and the same pass reads what is there before it makes a pod."""
    town = Town()
    async with operating(town, execute=Pods().execute):
        await silence(town, "secrets", 30)
        put(town, f"demo-auth-key{tail}", FILES["demo-auth-key"])
        before = town.find(kinds.SECRET, f"demo-auth-key{tail}")
        begin(town, CLUSTER)
        await town.told(kinds.SLURMCLUSTER, "demo", f"Secret demo-auth-key{tail} is not of SlurmCluster demo")
        assert not town.names(kinds.STATEFULSET)
        assert town.find(kinds.SECRET, f"demo-auth-key{tail}") == before


async def test_a_secret_is_taken_once_a_person_says_for_whom_it_is():
    """The annotation is on the Secret: who may create a SlurmCluster alone cannot write it, and that of another cluster does not count."""
    town = Town()
    put(town, "demo-auth-key", MINE, annotations={labels.BROUGHT_FOR: "other"})
    async with operating(town, execute=Pods().execute):
        begin(town, CLUSTER)
        await town.told(kinds.SLURMCLUSTER, "demo", f"annotate it with {labels.BROUGHT_FOR}=demo")
        provide(town, "demo-auth-key")
        await until(lambda: town.find(kinds.STATEFULSET, "demo-controller") and settled(town)["reason"] == "Made")
        assert data(town, "demo-auth-key") == data(town, "demo-auth-key-kept") == MINE


async def test_a_password_that_would_be_taken_later_is_refused_too():
    """Accounting is switched on in a cluster that runs: the foreign Secret is in no pod, and slurmctld stays."""
    town = Town()
    put(town, "demo-database-password", FILES["demo-database-password"])
    async with operating(town, execute=Pods().execute):
        await town.up(CLUSTER, WORKERS)
        daemons_begin(town)
        pods = town.names(kinds.POD)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"managedDatabase": {}}})
        await town.told(kinds.SLURMCLUSTER, "demo", "Secret demo-database-password is not of SlurmCluster demo")
        assert "demo-database" not in town.names(kinds.STATEFULSET)
        assert [each for each in town.names(kinds.POD) if "trial" not in each] == pods


@pytest.mark.parametrize("name", SECRETS)
async def test_keys_that_were_kept_come_back_for_a_cluster_of_the_same_name(name):
    """`auth.keepKeys`: the labels of the operator say for whom they are, although the former cluster and its memory are gone."""
    town = Town()
    kept = CLUSTER | {"auth": {"keepKeys": True}}
    async with operating(town, execute=Pods().execute):
        await town.up(kept, WORKERS)
        before = {each: data(town, each) for each in SECRETS}
    left = [copy.deepcopy(town.find(kinds.SECRET, each + tail)) for each in SECRETS for tail in ("", "-kept")]
    assert not [each for each in left if each["metadata"].get("ownerReferences")]
    made = Town()
    for each in left:
        made.fake.world.seed(each)
    remove(made, name)
    async with operating(made, execute=Pods().execute):
        await made.up(kept, WORKERS)
        await until(lambda: settled(made)["reason"] == "Made")
        assert {each: data(made, each) for each in SECRETS} == before
