"""`soperator restore` refuses a cluster that lives, and creates keys and claims before objects."""

import base64

import pytest

from soperator.api.base import GROUP
from soperator.cli import restore
from soperator.cli.support.errors import CliError
from soperator.kube import kinds
from soperator.render.backup.restore import Restoration
from soperator.render.parts import labels
from tests.unit.fake_api import FakeApi

SAID = Restoration("slurm", "demo", "registry.test/backup:1", "backups", "restic", "restic", "password")
KEYS = {"demo-auth-key": {"slurm.key": base64.b64encode(b"\0key").decode()}}
MANIFEST = {"slurm": "24.11.5", "stateTime": "2026-01-01T00:00:00Z", "nextJobId": 42}


def seed(fake, kind, name, **more):
    labels = more.pop("labels", {})
    meta = {"name": name, "namespace": "slurm", "labels": labels}
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
