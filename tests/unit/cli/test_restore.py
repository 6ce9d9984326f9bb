"""`soperator restore` refuses a cluster that lives, and creates keys and claims before objects."""

import asyncio
import base64
import contextlib

import pytest

from soperator.api.backup import Repository
from soperator.api.base import GROUP
from soperator.cli import restore
from soperator.cli.support.errors import CliError
from soperator.kube import kinds
from soperator.render.backup.restore import Restoration
from soperator.render.parts import labels
from tests.unit.fake_api import FakeApi

REPOSITORY = Repository.model_validate({"claimName": "backups", "password": {"secretName": "restic"}})
SAID = Restoration("slurm", "demo", "registry.test/backup:1", REPOSITORY)
KEYS = {"demo-auth-key": {"slurm.key": base64.b64encode(b"\0key").decode()}}
MANIFEST = {"slurm": "24.11.5", "stateTime": "2026-01-01T00:00:00Z", "nextJobId": 42}


def seed(fake, kind, name, **more):
    labels = more.pop("labels", {})
    meta = {"name": name, "namespace": "slurm", "labels": labels, **more.pop("meta", {})}
    fake.world.seed({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more})


def saved(kind, name, spec):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_a_cluster_that_lives_is_refused():
    """Its slurmctld would have its state changed below it."""
    fake = FakeApi()
    await restore.check_absent(fake.api(), SAID)
    seed(fake, kinds.SLURMCLUSTER, "demo", spec={})
    with pytest.raises(CliError, match="SlurmCluster demo exists in namespace slurm"):
        await restore.check_absent(fake.api(), SAID)


@pytest.mark.parametrize(("phase", "is_refused"), [("Running", True), ("Pending", True), ("Succeeded", False)])
async def test_workers_of_the_former_cluster_are_waited_for(phase, is_refused):
    """One that still runs a job would let it run twice; a pod that has ended runs none."""
    fake = FakeApi()
    seed(fake, kinds.POD, "demo-worker-0", labels={f"{GROUP}/cluster": "demo"}, spec={}, status={"phase": phase})
    seed(fake, kinds.POD, "other-worker-0", labels={f"{GROUP}/cluster": "other"}, spec={}, status={"phase": "Running"})
    if is_refused:
        with pytest.raises(CliError, match=r"still run.*: demo-worker-0$"):
            await restore.check_absent(fake.api(), SAID)
    else:
        await restore.check_absent(fake.api(), SAID)


async def test_foreign_keys_are_never_replaced():
    """Where one Secret has other keys, none is created."""
    fake = FakeApi()
    seed(fake, kinds.SECRET, "demo-jwt-key", data={"jwt_hs256.key": base64.b64encode(b"other").decode()})
    keys = KEYS | {"demo-jwt-key": {"jwt_hs256.key": base64.b64encode(b"ours").decode()}}
    with pytest.raises(CliError, match="Secret demo-jwt-key exists in namespace slurm with other keys"):
        await restore.make_secrets(fake.api(), SAID, keys)
    assert fake.world.find(kinds.SECRET, "slurm", "demo-auth-key") is None


async def test_keys_that_are_there_already_are_fine():
    """A restoration that was interrupted is run again."""
    fake = FakeApi()
    await restore.make_secrets(fake.api(), SAID, KEYS)
    writes = len(fake.writes())
    await restore.make_secrets(fake.api(), SAID, KEYS)
    made = fake.world.find(kinds.SECRET, "slurm", "demo-auth-key")
    assert made["data"] == KEYS["demo-auth-key"]
    assert made["metadata"]["annotations"] == {labels.BROUGHT_FOR: "demo"}, "the operator refuses keys of others"
    assert len(fake.writes()) == writes


async def test_claims_are_created_where_the_spec_names_none():
    """They have no owner yet, and the size of the spec."""
    fake = FakeApi()
    spec = {"controller": {"state": {"size": "5Gi"}}, "accounting": {}}
    found = await restore.make_claims(fake.api(), SAID, [saved("SlurmCluster", "demo", spec)], has_database=True)
    assert found == ("demo-state", "demo-database")
    made = fake.world.find(kinds.PVC, "slurm", "demo-state")
    assert made["spec"]["resources"]["requests"]["storage"] == "5Gi"
    assert "ownerReferences" not in made["metadata"]


async def test_a_claim_that_the_spec_names_has_to_exist():
    """It may be on storage that nobody but an administrator knows."""
    objects = [saved("SlurmCluster", "demo", {"controller": {"state": {"name": "big"}}})]
    with pytest.raises(CliError, match="PersistentVolumeClaim big, which does not exist: create it first"):
        await restore.make_claims(FakeApi().api(), SAID, objects, has_database=False)


async def test_the_operator_names_the_image():
    """As its chart has set it; without an operator the message says what to do."""
    fake = FakeApi()
    with pytest.raises(CliError, match="give --image"):
        await restore.find_image(fake.api())
    container = {"env": [{"name": "POD_NAMESPACE"}, {"name": "SOPERATOR_IMAGE_BACKUP", "value": "registry.test/b:2"}]}
    spec = {"template": {"spec": {"containers": [container]}}}
    seed(fake, kinds.DEPLOYMENT, "soperator", labels={"app.kubernetes.io/name": "soperator"}, spec=spec)
    assert await restore.find_image(fake.api()) == "registry.test/b:2"


def test_a_summary_says_what_is_missing():
    """A backup without a database does not look like one with it."""
    found = {"snapshot": "01234567", "manifest": MANIFEST, "secrets": KEYS, "objects": [saved("NodeSet", "a", {})]}
    text = restore.summary(found)
    assert "no database" in text
    assert "the next job id was 42" in text
    assert "1 NodeSet; 1 Secrets with keys" in text


async def test_a_deployment_that_looks_like_the_operators_gives_no_image():
    """Its image would get the keys; where two name one image, it is that."""
    fake = FakeApi()

    def operator(namespace, image):
        variables = [{"name": "SOPERATOR_IMAGE_BACKUP", "value": image}]
        spec = {"template": {"spec": {"containers": [{"env": variables}]}}}
        meta = {"namespace": namespace}
        seed(fake, kinds.DEPLOYMENT, "soperator", labels={"app.kubernetes.io/name": "soperator"}, meta=meta, spec=spec)

    operator("soperator-system", "registry.test/backup:1")
    operator("team", "registry.test/backup:1")
    assert await restore.find_image(fake.api()) == "registry.test/backup:1"
    operator("a-team", "evil.test/backup:1")
    with pytest.raises(CliError, match=r"evil.test/backup:1 of a-team/soperator.*give --image"):
        await restore.find_image(fake.api())


OWNED = {"ownerReferences": [{"apiVersion": f"{GROUP}/v1alpha1", "kind": "SlurmCluster", "name": "demo", "uid": "old"}]}


async def test_what_goes_with_the_former_cluster_is_waited_for(monkeypatch):
    """Kubernetes deletes its claims and keys after it, and would delete what was written to them."""
    monkeypatch.setattr(restore, "_PERIOD", 0.01)
    fake = FakeApi()
    seed(fake, kinds.PVC, "demo-state", meta=OWNED, spec={})
    secret = {"data": KEYS["demo-auth-key"]}
    seed(fake, kinds.SECRET, "demo-auth-key", meta=OWNED, **secret)
    objects = [saved("SlurmCluster", "demo", {})]
    parts = (
        (kinds.PVC, "demo-state", restore.make_claims(fake.api(), SAID, objects, has_database=False)),
        (kinds.SECRET, "demo-auth-key", restore.make_secrets(fake.api(), SAID, KEYS)),
    )
    for kind, name, part in parts:
        task = asyncio.create_task(part)
        await asyncio.sleep(0.1)
        assert not task.done(), name
        await fake.api().delete(kind, "slurm", name)
        await task
        assert "ownerReferences" not in fake.world.find(kind, "slurm", name)["metadata"]


async def test_a_claim_that_does_not_go_is_named(monkeypatch):
    """As one that a pod still holds."""
    monkeypatch.setattr(restore, "_PERIOD", 0.01)
    monkeypatch.setattr(restore, "_ENDS", 0.05)
    fake = FakeApi()
    seed(fake, kinds.PVC, "demo-state", meta=OWNED, spec={})
    with pytest.raises(
        CliError, match="PersistentVolumeClaim demo-state is being deleted with the former SlurmCluster demo"
    ):
        await restore.make_claims(fake.api(), SAID, [saved("SlurmCluster", "demo", {})], has_database=False)


def found(**more):
    objects = [saved("SlurmCluster", "demo", {})]
    return {"snapshot": "01234567", "manifest": MANIFEST, "secrets": KEYS, "objects": objects} | more


async def runs(monkeypatch, fake, what, **options):
    """`soperator restore` with pods that do at once what they shall; the reading one finds this."""

    async def read(api, said):
        return what()

    async def nothing(*words):
        pass

    @contextlib.asynccontextmanager
    async def connect(*words, **more):
        yield fake.api()

    monkeypatch.setattr(restore, "read", read)
    monkeypatch.setattr(restore, "_reach", nothing)
    monkeypatch.setattr("soperator.kube.api.Api.connect", connect)
    how = restore.RestoreOptions(image="registry.test/backup:1", **options)
    await restore._restore("demo", "slurm", REPOSITORY, how)


async def test_the_snapshot_that_was_read_is_the_one_that_is_written(monkeypatch):
    """A backup that was still going on may have made a newer one meanwhile, with other keys."""
    fake = FakeApi()
    await runs(monkeypatch, fake, found)
    written = [each.body for each in fake.requests if each.verb == "create" and each.where.plural == "pods"]
    assert [each["spec"]["containers"][0]["args"] for each in written] == [["write", "01234567"]]
    assert fake.world.find(kinds.SLURMCLUSTER, "slurm", "demo")


async def test_a_cluster_that_came_while_the_snapshot_was_read_is_refused(monkeypatch):
    """A GitOps tool may have created it, and the pod would write below its slurmctld."""
    fake = FakeApi()

    def reading():
        seed(fake, kinds.SLURMCLUSTER, "demo", spec={})
        return found()

    with pytest.raises(CliError, match="SlurmCluster demo exists"):
        await runs(monkeypatch, fake, reading)
    assert fake.writes() == []


async def test_a_planted_snapshot_creates_nothing(monkeypatch):
    """Neither an object of another kind nor a Secret of another name."""
    fake = FakeApi()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}
    for planted in ({"objects": [*found()["objects"], pod]}, {"secrets": {"other": {}}}):
        with pytest.raises(CliError, match=r"snapshot 01234567 is no backup .*find out who wrote it"):
            await runs(monkeypatch, fake, lambda planted=planted: found(**planted))
    assert fake.writes() == []


async def test_an_object_that_is_being_deleted_is_waited_for(monkeypatch):
    """What was applied to it would go with it: the cluster would come back without these workers."""
    monkeypatch.setattr(restore, "_PERIOD", 0.01)
    monkeypatch.setattr(restore, "_ENDS", 0.05)
    fake = FakeApi()
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [labels.FINALIZER]}
    seed(fake, kinds.NODESET, "worker", meta=going, spec={})
    nodes = saved("NodeSet", "worker", {"clusterRef": {"name": "demo"}})
    with pytest.raises(CliError, match="NodeSet worker is being deleted"):
        await runs(monkeypatch, fake, lambda: found(objects=[nodes, *found()["objects"]]))
    assert fake.writes() == []


async def test_rights_on_nodes_are_restored_only_when_asked(monkeypatch):
    """A NodeSet with a folder of the Node is root there; it may be planted, or an administrator's."""
    fake = FakeApi()
    spec = {"clusterRef": {"name": "demo"}, "volumes": [{"name": "all", "hostPath": {"path": "/"}}]}
    planted = found(objects=[saved("NodeSet", "worker", spec), *found()["objects"]])
    words = r"NodeSet worker: spec\.volumes\[0\]\.hostPath .*/.*--allow-node-access"
    with pytest.raises(CliError, match=words):
        await runs(monkeypatch, fake, lambda: planted)
    assert fake.writes() == []
    assert "gives pods rights on the Nodes: NodeSet worker" in restore.summary(planted)
    await runs(monkeypatch, fake, lambda: planted, allow_node_access=True)
    assert fake.world.find(kinds.NODESET, "slurm", "worker")["spec"] == spec
