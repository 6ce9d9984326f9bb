"""A step of a rotation is written once, however old the cache is that it was decided upon."""

from types import SimpleNamespace

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube import kinds
from soperator.kube.objects import Secret
from soperator.reconcile.cache.informers import make_stores
from soperator.reconcile.keys import key_rotation
from soperator.render.cluster.keys import read_record, render_held, render_kept
from soperator.render.parts.model import Cluster
from soperator.slurm.keys import KeyContent, RotationRecord
from tests.unit.fake_api import FakeApi

KNOWN = RotationRecord("2026-11", "Known")
NAME, FILE = "demo-auth-key", "slurm.jwks"


@pytest.fixture
def cluster():
    """A cluster whose key is rotated."""
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate({"jail": {"claim": {"name": "jail"}}}))


@pytest.fixture
def server(cluster):
    """An API server with a key that was never rotated, and its copy."""
    made = FakeApi()
    seed(made, cluster, b"first")
    return made


def seed(server, cluster, key):
    held = KeyContent({"slurm.key": key})
    for each in (render_held(cluster, NAME, held), render_kept(cluster, NAME, held)):
        server.world.seed(each)


def stored(server):
    return server.world.find(kinds.SECRET, "slurm", NAME)


async def test_a_step_that_was_written_is_not_written_again_by_an_operator_whose_cache_is_older(server, cluster):
    """A second one would throw away the key with which daemons sign by then."""
    operator = SimpleNamespace(api=server.api(), stores=make_stores())
    cached = (await operator.api.get(kinds.SECRET, Secret, "slurm", NAME)).metadata
    await key_rotation._write(operator, cluster, cached, key_rotation.RotationChange(RotationRecord(), KNOWN, FILE))
    once = stored(server)
    assert read_record(once["metadata"]["annotations"]) == KNOWN
    await key_rotation._write(operator, cluster, cached, key_rotation.RotationChange(RotationRecord(), KNOWN, FILE))
    assert stored(server) == once


async def test_a_step_is_not_written_on_a_secret_that_was_made_again(server, cluster):
    """It is another one by its uid, whatever it has noted."""
    operator = SimpleNamespace(api=server.api(), stores=make_stores())
    cached = (await operator.api.get(kinds.SECRET, Secret, "slurm", NAME)).metadata
    for name in (NAME, f"{NAME}-kept"):
        server.world.remove(kinds.SECRET, "slurm", name)
    seed(server, cluster, b"second")
    before = stored(server)["data"]
    await key_rotation._write(operator, cluster, cached, key_rotation.RotationChange(RotationRecord(), KNOWN, FILE))
    assert stored(server)["data"] == before
